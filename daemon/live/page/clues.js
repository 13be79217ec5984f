// A diagnosis in words: what is wrong and where, and what it rests on. The words come from the daemon, with the kinds; the
// rules are those of detectors/incidents/clues.py, and tests/daemon/live/test_clues.py compares the two.

import { vocabulary } from './kinds.js';

const MOST_STREAMS = 8;
const [MOST_OTHERS, MAY_BE] = [3, 0.01];

/** @type {(words: Record<string, string>, word: string) => string} */
const of = (words, word) => words[word] ?? word;

/** @type {(names: string[]) => string} */
const listed = (names) => (names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names[names.length - 1]}`);

/**
 * The place of a fault in a sentence.
 * @type {(location: string) => string}
 */
export function placeWords(location) {
  if (location.includes('~')) return `the link between ${listed(location.split('~').map(placeWords))}`;
  const at = location.indexOf('/');
  return at < 0 ? location : `the ${location.slice(at + 1).toUpperCase()} of ${location.slice(0, at)}`;
}

/**
 * A diagnosis, or one of its alternatives.
 * @type {(fault: { type: string, location: string }) => string}
 */
export const faultAt = ({ type, location }) => `${vocabulary().faults[type] ?? `${type.replaceAll('_', ' ')} at`} ${placeWords(location)}`;

/**
 * How probable, in the words of the sentence: no diagnosis is sure.
 * @type {(confidence: number) => string}
 */
export const likely = (confidence) => (confidence >= 0.995 ? 'over 99 %' : `${Math.round(100 * confidence)} %`);

/**
 * What else it may be, with its probability; not what is as good as ruled out.
 * @type {(alternatives: { type: string, location: string, confidence: number }[]) => string[]}
 */
export const others = (alternatives) => alternatives.filter(({ confidence }) => confidence >= MAY_BE).slice(0, MOST_OTHERS).map((fault) => `${faultAt(fault)} (${likely(fault.confidence)})`);

/**
 * A line for each thing that a diagnosis rests on; the streams that show one sign share a line.
 * @type {(evidence: Clue[]) => string[]}
 */
export function clues(evidence) {
  const { signs, tools, patterns } = vocabulary();
  /** @type {Map<string, string[]>} */
  const shown = new Map();
  const lines = [];
  for (const clue of evidence) {
    if ('tool' in clue) lines.push(`${of(tools, clue.tool)} ${placeWords(clue.target)}: ${found(clue.found)}`);
    else if ('pattern' in clue) lines.push(`what it has shown looks like ${of(patterns, clue.pattern)} (${likely(Number(clue.probability))})`);
    else if ('declared' in clue) lines.push(`declared: ${clue.declared}; found: ${clue.found}`);
    else if ('alarm' in clue) shown.set(clue.alarm, [...(shown.get(clue.alarm) ?? []), placeWords(clue.stream)]);
  }
  return [...[...shown].map(([sign, streams]) => `${of(signs, sign)}: ${some(streams)}`), ...lines];
}

/** @type {(word: string) => string} */
function found(word) {
  const { findings } = vocabulary();
  const at = word.indexOf(':');
  if (at < 0) return of(findings, word);
  return `${findings[word.slice(0, at + 1)] ?? word.slice(0, at)} ${placeWords(word.slice(at + 1))}`;
}

/** @type {(streams: string[]) => string} */
function some(streams) {
  const more = streams.length - MOST_STREAMS;
  return streams.slice(0, MOST_STREAMS).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
