// Types that the scripts of an episode's page share: what evaluation/conflicts/playback/content.py writes into it.
// For the type checker only; the page never loads this file.

/** One character per step: '1' is set. */
type Flags = string;

interface Craft {
  east: (number | null)[];
  north: (number | null)[];
  heading_deg: (number | null)[];
  speed_kt: (number | null)[];
  alt_ft: (number | null)[] | null;
  arrived: Flags;
  violated: Flags;
  waypoints: [from_step: number, east: number | null, north: number | null][];
}

/** Two that will pass each other closely; `conflict` is 1 or 0. */
type Pass = [step: number, a: number, b: number, dcpa_nm: number, tcpa_s: number,
  a_east: number, a_north: number, b_east: number, b_north: number, conflict: number];

interface EpisodeWindow {
  kind: 'conflict' | 'alert';
  index: number;
  verdict: 'matched' | 'missed' | 'ghost';
  /** In steps, half-open. */
  start: number;
  end: number;
  start_s: number;
  end_s: number;
  who: number[];
  dcpa_nm: number | null;
  partner: number | null;
  iou: number | null;
  lead_s: number | null;
}

interface EpisodeData {
  name: string;
  ids: string[];
  t_s: number[];
  step_s: number;
  end_s: number;
  settings: { los_threshold_nm: number; horizon_s: number; threat_nm: number };
  chart: { middle: number; shrink: number; nm_per_unit: number };
  aircraft: Craft[];
  conflict: Flags;
  alert: Flags;
  lost: Flags;
  deliberate: Flags;
  separation_nm: (number | null)[];
  dcpa_nm: (number | null)[];
  passes: Pass[];
  commands: [step: number, a: number, turn_deg: number, faster_kt: number][];
  conflicts: EpisodeWindow[];
  alerts: EpisodeWindow[];
  mistakes: { kind: 'missed' | 'false'; t_s: number; east: number; north: number }[];
  metrics: Record<string, number | null>;
  metric_words: Record<string, string>;
}

/** What is drawn of one aircraft. */
interface CraftMarks {
  zone: SVGCircleElement;
  trail: SVGPathElement;
  group: SVGGElement;
  title: SVGTitleElement;
  body: SVGPathElement;
  ring: SVGCircleElement;
  more: SVGTextElement;
}
