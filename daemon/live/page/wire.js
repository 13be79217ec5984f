// The connection to the daemon: decodes pictures, hands on messages, and comes back by itself when it is lost.

const TYPES = { u1: Uint8Array, u4: Uint32Array, i4: Int32Array, f4: Float32Array };
const MAGIC = 0x31504b57; // "WKP1", little-endian
const ALIGN = 8;
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 10000;

/**
 * A picture from its message: the header with `columns` replaced by typed arrays over the same memory.
 * The layout is in daemon/live/picture.py.
 * @type {(buffer: ArrayBuffer, start?: number) => Picture}
 */
export function decode(buffer, start = 0) {
  const view = new DataView(buffer, start);
  if (view.getUint32(0, true) !== MAGIC) throw new Error('not a picture');
  const length = view.getUint32(4, true);
  /** @type {PictureHeader} */
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, start + 8, length)));
  let at = start + 8 + length;
  /** @type {Partial<Record<keyof Columns, ArrayBufferView>>} */
  const named = {};
  for (const [name, type, rows] of header.columns) {
    const Column = TYPES[type];
    named[name] = new Column(buffer, at, rows);
    at += Math.ceil(rows * Column.BYTES_PER_ELEMENT / ALIGN) * ALIGN;
  }
  const columns = /** @type {Columns} */ (named);
  return { ...header, columns, rows: columns.slot.length };
}

/** Connects to `/live` and stays connected. `on.picture(buffer)`, `on.message(object)`, `on.state(word, detail)`. */
export class Wire {
  /** @param {{ picture: (buffer: ArrayBuffer) => void, message: (message: Message) => void, state: (word: string, detail: string) => void }} on */
  constructor(on) {
    this.on = on;
    /** @type {WebSocket | null} */
    this.line = null;
    this.retryMs = RETRY_MIN_MS;
    /** @type {{ select?: string | null, network?: boolean }} */
    this.wish = { select: null, network: false };
    this.connect();
  }

  connect() {
    const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:';
    const line = new WebSocket(`${scheme}//${location.host}/live`);
    line.binaryType = 'arraybuffer';
    line.onopen = () => {
      this.retryMs = RETRY_MIN_MS;
      this.line = line;
      this.say();
    };
    line.onmessage = ({ data }) => {
      if (typeof data === 'string') this.on.message(JSON.parse(data));
      else this.on.picture(data);
    };
    line.onclose = ({ code }) => {
      this.line = null;
      this.on.state('lost', code === 1013 ? 'too many are watching' : 'connection lost');
      setTimeout(() => this.connect(), this.retryMs * (0.75 + 0.5 * Math.random()));
      this.retryMs = Math.min(2 * this.retryMs, RETRY_MAX_MS);
    };
  }

  /**
   * Tell the daemon what this page wants to see in addition to the picture.
   * @type {(wish: { select?: string | null, network?: boolean }) => void}
   */
  ask(wish) {
    Object.assign(this.wish, wish);
    this.say();
  }

  say() {
    if (this.line) this.line.send(JSON.stringify(this.wish));
  }
}
