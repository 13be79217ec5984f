// Questions to the daemon's API below /api/v1: alarms, pictures and tracks of the past, and what a person may change.

import { decode } from './wire.js';

/** Why the daemon did not do it, in its own words; `status` is that of HTTP, 0 when nobody answered. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} message
   */
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/**
 * The address of a question: parameters that are empty are left out, lists are joined.
 * @type {(path: string, params?: Params) => string}
 */
export function addressOf(path, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined || value === '' || (Array.isArray(value) && !value.length)) continue;
    query.set(name, Array.isArray(value) ? value.join(',') : String(value));
  }
  const asked = query.toString();
  return `/api/v1${path}${asked ? `?${asked}` : ''}`;
}

/** @type {(address: string, init?: RequestInit) => Promise<Response>} */
async function fetched(address, init) {
  const answer = await fetch(address, init).catch(() => null);
  if (!answer) throw new Refused(0, 'unreachable', 'the daemon does not answer');
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, problem.code ?? '', problem.message ?? answer.statusText);
}

/**
 * What the API answers to a question.
 * @template T
 * @param {string} path
 * @param {Params} [params]
 * @returns {Promise<T>}
 */
export async function ask(path, params) {
  return (await fetched(addressOf(path, params))).json();
}

/**
 * Everybody at a moment of the past.
 * @type {(t: number) => Promise<Picture>}
 */
export async function pictureAt(t) {
  return decode(await (await fetched(addressOf('/picture', { t }))).arrayBuffer());
}

/**
 * Ask for a change; resolves to the answer, null without one.
 * @type {(path: string, body: object, method?: string) => Promise<any>}
 */
export async function tell(path, body, method = 'POST') {
  const answer = await fetched(addressOf(path), {
    method, headers: { 'Content-Type': 'application/json' }, body: method === 'DELETE' ? undefined : JSON.stringify(body),
  });
  return answer.status === 204 ? null : answer.json();
}

/** @type {(error: unknown) => string} */
export const whyNot = (error) => (error instanceof Error && error.message ? error.message : 'the daemon did not take it');
