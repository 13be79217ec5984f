// What each kind of alarm means, the unit and meaning of each number of its evidence, and the words of diagnoses: asked for
// once.

import { ask } from './api.js';

/** @type {Map<string, KindInfo>} */
const known = new Map();
/** @type {Vocabulary} */
let words = { faults: {}, signs: {}, tools: {}, findings: {}, patterns: {} };

/** Ask; until the answer is here, names stand for themselves. */
export async function learnKinds() {
  /** @type {{ kinds: KindInfo[], diagnoses?: Vocabulary }} */
  const { kinds, diagnoses } = await ask('/kinds').catch(() => ({ kinds: [] }));
  words = diagnoses ?? words;
  for (const kind of kinds) known.set(kind.name, kind);
  return kinds.map(({ name }) => name);
}

/** @type {(name: string) => KindInfo | undefined} */
export const kindOf = (name) => known.get(name);

/** Words for what diagnoses call by a short name. */
export const vocabulary = () => words;

/** The names of all kinds, in order. */
export const kindNames = () => [...known.keys()].sort();
