// Mouse, touch and keys on the map: pan, zoom, pinch, pick, and drag a circle.

const TAP_PX = 6;
const PAN_PX = 80;
const ZOOM = 1.35;

/**
 * `onPick(px, py)` for a tap or click that is no drag; `onTake()` when the user takes the map into their own hands. While
 * `area` is on, one finger drags a circle.
 * @type {(canvas: HTMLCanvasElement, map: MapView, area: AreaTool, on: { onPick: (x: number, y: number) => void, onTake: () => void }) => void}
 */
export function gestures(canvas, map, area, { onPick, onTake }) {
  const onMove = () => {
    map.taken();
    onTake();
  };
  /** @type {Map<number, Point>} */
  const fingers = new Map();
  let travelled = 0;
  /** @type {Point} */
  let began = [0, 0];

  /** @type {(event: MouseEvent) => Point} */
  const here = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, here(event));
    if (fingers.size === 1) [travelled, began] = [0, here(event)];
  });

  canvas.addEventListener('pointermove', (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const now = here(event);
    const others = [...fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    if (!others.length && area.on) {
      area.drag(began, now, false);
    } else if (others.length) {
      const [other] = others;
      /** @type {(p: Point) => number} */
      const apart = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]);
      map.view.zoom(apart(now) / Math.max(apart(before), 1), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      map.view.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
      travelled = Infinity;
      onMove();
    } else {
      travelled += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
      if (travelled > TAP_PX) {
        map.view.pan(now[0] - before[0], now[1] - before[1]);
        onMove();
      }
    }
    fingers.set(event.pointerId, now);
  });

  /** @type {(event: PointerEvent) => void} */
  const lift = (event) => {
    const at = fingers.get(event.pointerId);
    fingers.delete(event.pointerId);
    if (at && area.on && !fingers.size) area.drag(began, at, true);
    else if (at && event.type === 'pointerup' && travelled <= TAP_PX) onPick(...at);
  };
  canvas.addEventListener('pointerup', lift);
  canvas.addEventListener('pointercancel', lift);

  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    onMove();
    map.view.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0016)), ...here(event));
  }, { passive: false });

  canvas.addEventListener('dblclick', (event) => {
    onMove();
    map.view.zoom(2, ...here(event));
  });

  canvas.addEventListener('keydown', (event) => {
    /** @type {Record<string, Point>} */
    const pans = { ArrowLeft: [PAN_PX, 0], ArrowRight: [-PAN_PX, 0], ArrowUp: [0, PAN_PX], ArrowDown: [0, -PAN_PX] };
    const pan = pans[event.key];
    if (!pan || event.ctrlKey || event.metaKey || event.altKey) return;
    map.view.pan(...pan);
    onMove();
    event.preventDefault();
  });
}

/**
 * One step closer or further, around the middle.
 * @type {(map: MapView, steps: number) => void}
 */
export function zoomBy(map, steps) {
  map.taken();
  map.view.zoom(ZOOM ** steps);
}
