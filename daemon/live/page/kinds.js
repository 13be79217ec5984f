// What each kind of alarm means, and the unit and meaning of each number of its evidence: asked for once.

import { ask } from './api.js';

/** @type {Map<string, KindInfo>} */
const known = new Map();

/** Ask; until the answer is here, names stand for themselves. */
export async function learnKinds() {
  /** @type {{ kinds: KindInfo[] }} */
  const { kinds } = await ask('/kinds').catch(() => ({ kinds: [] }));
  for (const kind of kinds) known.set(kind.name, kind);
  return kinds.map(({ name }) => name);
}

/** @type {(name: string) => KindInfo | undefined} */
export const kindOf = (name) => known.get(name);

/** The names of all kinds, in order. */
export const kindNames = () => [...known.keys()].sort();
