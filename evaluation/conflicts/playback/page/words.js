// What is said about times, windows and moments.

export const NONE = '–';

/** @type {(seconds: number) => string} */
export function clockWords(seconds) {
  const whole = Math.round(seconds);
  const hours = Math.floor(whole / 3600);
  const minutes = String(Math.floor(whole / 60) % 60);
  return `${hours ? `${hours}:${minutes.padStart(2, '0')}` : minutes}:${String(whole % 60).padStart(2, '0')}`;
}

/** @type {(miles: number | null) => string} */
export function milesWords(miles) {
  return miles === null ? NONE : `${miles.toFixed(miles < 10 ? 1 : 0)} NM`;
}

/** @type {(n: number, one: string, many?: string) => string} */
export function countWords(n, one, many = `${one}s`) {
  return `${n} ${n === 1 ? one : many}`;
}

/** @type {(data: EpisodeData, who: number[]) => string} */
export function namesOf(data, who) {
  return who.map((a) => data.ids[a]).join(' and ');
}

/** @type {(window: EpisodeWindow) => string} */
export function titleOf(window) {
  return `${{ matched: 'Matched', missed: 'Missed', ghost: 'Ghost' }[window.verdict]} ${window.kind} ${window.index + 1}`;
}

/**
 * One sentence or two about a window.
 * @type {(data: EpisodeData, window: EpisodeWindow) => string}
 */
export function aboutWindow(data, window) {
  const when = `${titleOf(window)}, ${clockWords(window.start_s)} to ${clockWords(window.end_s)}`;
  if (window.kind === 'conflict') {
    const nearest = `${namesOf(data, window.who)} were predicted to pass at ${milesWords(window.dcpa_nm)}`;
    if (window.partner === null) return `${when}: ${nearest}. No alert answers it.`;
    const lead = window.lead_s ?? 0;
    const early = lead ? `began ${Math.abs(lead)} s ${lead > 0 ? 'before' : 'after'} it` : 'began with it';
    return `${when}: ${nearest}. Alert ${window.partner + 1} answers it and ${early}; overlap over union ${(window.iou ?? 0).toFixed(2)}.`;
  }
  const acting = `${namesOf(data, window.who) || 'nobody'} commanded`;
  return `${when}: ${acting}. ${window.partner === null ? 'No conflict is matched with it.' : `It answers conflict ${window.partner + 1}.`}`;
}

/** @type {(turn: number, faster: number) => string} */
export function commandWords(turn, faster) {
  /** @type {(value: number, unit: string) => string[]} */
  const part = (value, unit) => (value ? [`${value > 0 ? '+' : '−'}${Math.abs(value)}${unit}`] : []);
  return [...part(turn, '°'), ...part(faster, ' kt')].join(' ');
}

/**
 * What there is to say about a step: lines with the tone of their mark.
 * @type {(data: EpisodeData, step: number, windows: EpisodeWindow[]) => [tone: string, text: string][]}
 */
export function aboutMoment(data, step, windows) {
  /** @type {[string, string][]} */
  const lines = windows.map((w) => [w.verdict, `${titleOf(w)}, until ${clockWords(w.end_s)}`]);
  if (!windows.length) lines.push(['quiet', 'No conflict and no alert']);
  const separation = data.separation_nm[step];
  const lost = data.lost[step] === '1';
  lines.push([lost ? 'lost' : 'quiet', `Least separation ${milesWords(separation)}${lost ? ': lost' : ''}`]);
  const conflicts = passesAt(data, step).filter((pass) => pass[9]);
  const tone = windows.some((w) => w.verdict === 'missed') ? 'missed' : 'matched';
  for (const [, a, b, nm, s] of conflicts.slice(0, 4)) lines.push([tone, `${namesOf(data, [a, b])} will pass at ${milesWords(nm)} in ${s} s`]);
  if (conflicts.length > 4) lines.push([tone, `and ${countWords(conflicts.length - 4, 'further pair')} in conflict`]);
  if (!conflicts.length) lines.push(['quiet', `Least predicted ${milesWords(data.dcpa_nm[step])} within ${data.settings.horizon_s} s`]);
  for (const [at, a, turn, faster] of data.commands) {
    if (at === step) lines.push([windows.find((w) => w.kind === 'alert')?.verdict ?? 'quiet', `Deliberate command to ${data.ids[a]}: ${commandWords(turn, faster)}`]);
  }
  return lines;
}

/** @type {(data: EpisodeData, step: number) => Pass[]} */
export function passesAt(data, step) {
  return data.passes.filter((pass) => pass[0] === step);
}
