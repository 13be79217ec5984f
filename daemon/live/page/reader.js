// Who looks at the page: the name of the token, whether it may only look, and the way out.

import { by, setText } from './dom.js';

/**
 * `token`: its name, '' for somebody who needs none; `operates`: it may acknowledge, accept and shelve.
 * @type {(token: string, operates: boolean) => void}
 */
export function whoReads(token, operates) {
  document.body.classList.toggle('looks-only', !operates);
  by('reader').hidden = token === '';
  setText(by('reader-words'), `You are logged in as “${token}”${operates ? '' : ', which may look and change nothing'}.`);
  by('logout').onclick = async () => {
    await fetch('/logout', { method: 'POST' }).catch(() => null);
    location.reload();
  };
}
