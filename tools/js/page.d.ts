// Types that the live page's scripts share: what the daemon sends (daemon/live/*.py), and short names for the rest.
// For the type checker only; the page never loads this file.

type App = import('../../daemon/live/page/main.js').App;
type AreaTool = import('../../daemon/live/page/area.js').AreaTool;
type BaseMap = import('../../daemon/live/page/basemap.js').BaseMap;
type Alarm = import('../../daemon/live/page/alarms.js').Alarm;
type Fleet = import('../../daemon/live/page/fleet.js').Fleet;
type History_ = import('../../daemon/live/page/history.js').History;
type MapView = import('../../daemon/live/page/map.js').MapView;
type View = import('../../daemon/live/page/view.js').View;

type Pen = CanvasRenderingContext2D;
type Point = [x: number, y: number];
/** West, south, east, north; or left, top, width, height on the screen. */
type Box = [number, number, number, number];
type World = 'earth' | 'local';
type Pane = 'alarms' | 'fleet' | 'vehicle' | 'network';
/** What the table of vehicles is sorted by. */
type SortBy = 'name' | 'alt_m' | 'speed_mps' | 'track_deg' | 'age_s' | 'score';

// -- pictures: daemon/live/picture.py ---------------------------------------------------------------------------

interface Columns {
  slot: Uint32Array;
  x: Int32Array;
  y: Int32Array;
  alt_m: Float32Array;
  speed_mps: Float32Array;
  track_deg: Float32Array;
  climb_mps: Float32Array;
  age_s: Float32Array;
  score: Float32Array;
  worst: Uint8Array;
  frame: Uint8Array;
  ground: Uint8Array;
  pair_a: Uint32Array;
  pair_b: Uint32Array;
  pair_score: Float32Array;
  pair_tcpa_s: Float32Array;
  pair_dcpa_nm: Float32Array;
  pair_vsep_ft: Float32Array;
  pair_sep_nm: Float32Array;
  pair_los: Uint8Array;
}

interface Figures {
  messages_per_s: number;
  dropped: number;
  turn_ms: number;
  lag_s: number | null;
  /** Since the last message. */
  quiet_s: number;
}

interface Picture {
  t: number | null;
  t_now: number | null;
  vehicles: number;
  figures: Figures;
  state: string[];
  /** Sinks that do not deliver, each with its reason. */
  warnings: string[];
  /** Vehicles that some detector should judge and does not. */
  unwatched: number;
  /** Of a moment of the past: who is meant by each slot. */
  roster?: Roster;
  columns: Columns;
  rows: number;
}

/** The header of a picture as it is sent: columns are named, not there yet. */
interface PictureHeader extends Omit<Picture, 'columns' | 'rows'> {
  columns: [name: keyof Columns, type: 'u1' | 'u4' | 'i4' | 'f4', rows: number][];
}

// -- alarms: detectors/alarms/events.py, daemon/live/desk.py ----------------------------------------------------

type Severity = 'advisory' | 'caution' | 'warning';
type AlarmState = 'raised' | 'updated' | 'cleared';

/** Numbers by name (null: unknown), and a few words; which ones there are depends on the alarm's kind. */
interface Evidence {
  [name: string]: unknown;
  causes?: string[];
  alarms?: unknown[];
  lat?: number | null;
  lon?: number | null;
  radius_km?: number | null;
  /** Ways out of a conflict, for each of the two aircraft. */
  ways?: Way[];
}

/** What an aircraft does now, and the ranges that keep the minima, of tracks clockwise; null: not known. */
interface Band {
  now: number | null;
  free: [from: number, to: number][] | null;
}

interface Way {
  id: string;
  trk_deg: Band;
  gs_kt: Band;
  alt_ft: Band;
  vs_fpm: Band;
}

/** What a diagnosis rests on: an alarm, the answer of a tool, a pattern, or what differs from the declared topology. */
type Clue =
  | { alarm: string; stream: string }
  | { tool: string; target: string; found: string }
  | { pattern: string; probability: string }
  | { declared: string; found: string };

/** Words for what diagnoses call by a short name. */
interface Vocabulary {
  faults: Record<string, string>;
  signs: Record<string, string>;
  tools: Record<string, string>;
  findings: Record<string, string>;
  patterns: Record<string, string>;
}

interface Diagnosis {
  type: string;
  location: string;
  confidence: number;
  evidence?: Clue[];
  alternatives?: { type: string; location: string; confidence: number }[];
}

interface AlarmEvent {
  id: string;
  kind: string;
  state: AlarmState;
  severity: Severity;
  subjects: string[];
  t: number;
  t_onset: number;
  t_raised: number;
  t_cleared: number | null;
  score: number;
  threshold: number;
  evidence: Evidence;
  diagnosis: Diagnosis | null;
  /** How it ended, one word of the declared ones; null until then. */
  ended: string | null;
  /** The event as one sentence; empty in journals of earlier versions. */
  say: string;
  /** The id of the incident that it is a symptom of. */
  incident?: string | null;
  /** The moment of the highest score or the least separation; null in journals of earlier versions. */
  worst: { t: number; score: number; evidence: Evidence } | null;
}

interface Acknowledgement {
  t: number;
  by: string;
}

/** An alarm as the list shows it: its state at the moment that is shown. */
interface AlarmRow {
  alarm: Alarm;
  state: AlarmState;
  severity: Severity;
  score: number;
  rank: number;
  /** What is known of it is from after the moment that is shown. */
  later: boolean;
}

/** A row in the order of the list; `under` the incident that explains it, which `explains` so many. */
interface Folded {
  row: AlarmRow;
  explains: number;
  under: boolean;
}

// -- the API: daemon/http/api/shapes.py -------------------------------------------------------------------------

type Params = Record<string, string | number | boolean | string[] | null | undefined>;

interface AlarmFound {
  id: string;
  era: number;
  t: number;
  t_raised: number;
  t_cleared: number | null;
  say: string;
  acknowledged: { by: string; t_wall: number } | null;
  shelved: string | null;
  event: AlarmEvent;
}

interface AlarmPage {
  alarms: AlarmFound[];
  total: number;
  symptoms: number;
  next: string | null;
}

interface AlarmLife {
  alarm: AlarmFound;
  events: AlarmEvent[];
}

interface TimelineAnswer {
  eras: { era: number; t_first: number; t_last: number }[];
  era: number | null;
  t0: number | null;
  t1: number | null;
  step_s: number;
  steps: { t: number; alarms: number; by_severity: Partial<Record<Severity, number>> }[];
}

interface ReplayState {
  t: number | null;
  speed: number;
  paused: boolean;
  t_first: number | null;
  t_last: number | null;
  read: boolean;
}

interface VehicleTrack {
  t: number[];
  alt_m: Values;
  speed_mps: Values;
  score: Values;
}

interface Channels {
  t: number[];
  columns: Record<string, Values>;
}

interface KindInfo {
  name: string;
  threshold: number | null;
  help: string;
  evidence: { name: string; unit: string; meaning: string }[];
}

interface Area {
  lat: number;
  lon: number;
  radius_km: number;
}

/** A circle as the API has it. */
interface Circle {
  lat: number;
  lon: number;
  radius_m: number;
}

interface Shelf {
  id: string;
  t_wall: number;
  t_expires_wall: number;
  by: string;
  reason: string;
  alarm: string | null;
  vehicle: string | null;
  pair: string[] | null;
  kind: string | null;
  area: Circle | null;
}

// -- messages: daemon/live/view.py, vehicle.py, network.py, roster.py -------------------------------------------

type News = { event: AlarmEvent; say: string; shelved?: string | null } | { acknowledged: string; by: Acknowledgement | null };

interface AlarmsMessage {
  type: 'alarms';
  alarms: AlarmEvent[];
  acknowledged: Record<string, Acknowledgement>;
  /** Each alarm as one sentence, by its id. */
  say: Record<string, string>;
  version: string;
  recorded: boolean;
  /** Causes that last until a person accepts them, by the alarm's kind; none of a recording. */
  accepts: Record<string, string[]>;
  /** The shelf that an alarm is on, by its id. */
  shelved?: Record<string, string>;
}

interface Roster {
  reset: boolean;
  era: string;
  slots: number[];
  ids: string[];
  callsigns: string[];
}

interface RosterMessage extends Roster {
  type: 'roster';
}

interface Stream {
  kind: string;
  samples: number;
  age_s: number;
  rate_hz: number | null;
  values: [name: string, value: number, unit: string][];
}

interface Points {
  unit: string;
  t: number[];
  v: number[];
}

interface Score {
  kind: string;
  ratio: number;
  age_s: number;
  score?: number;
  threshold?: number;
  causes?: string[];
  numbers?: Record<string, number | null>;
}

interface Link {
  via: string;
  streams: { kind: string; usual_hz: number | null; rate_ratio: number | null; gap_s: number; silent: boolean }[];
  latency_excess_s: number | null;
  jitter_s: number | null;
  reordered: number;
}

interface Unwatched {
  detector: string;
  since_t: number | null;
  reason: string;
  say: string;
}

/** Detectors that judge the vehicle, with the time since when; those that do so in part; and those that do not. */
interface Coverage {
  watched: Record<string, number | null>;
  partly: Unwatched[];
  not_watched: Unwatched[];
}

interface KnownVehicle {
  type: 'vehicle';
  id: string;
  known: true;
  callsign: string;
  t: number;
  streams: Stream[];
  series: Record<string, Points>;
  scores: Score[];
  link: Link | null;
  coverage: Coverage;
}

type VehicleMessage = KnownVehicle | { type: 'vehicle'; id: string; known: false };

interface Gateway {
  name: string;
  vehicles: number;
  silent: number;
  rate_ratio: number | null;
  latency_excess_s: number | null;
  rtt_s: number | null;
  load: number | null;
}

interface LinkedVehicle {
  id: string;
  gateway: number;
  rate_ratio: number | null;
  latency_excess_s: number | null;
  silent: boolean;
}

interface Feed {
  name: string;
  connected: boolean;
  type: string;
}

interface NetworkMessage {
  type: 'network';
  aircraft: number;
  gateways: Gateway[];
  vehicles: LinkedVehicle[];
  unlisted: number;
  feeds: Feed[];
}

type Message = AlarmsMessage | { type: 'news'; news: News[] } | RosterMessage | VehicleMessage | NetworkMessage;

// -- elements: index.html, dom.js -------------------------------------------------------------------------------

/** Elements of index.html that are more than an HTMLElement, by id. */
interface Elements {
  air: HTMLCanvasElement;
  'area-dialog': HTMLDialogElement;
  'area-form': HTMLFormElement;
  'area-kind': HTMLSelectElement;
  'area-lat': HTMLInputElement;
  'area-lon': HTMLInputElement;
  'area-minutes': HTMLSelectElement;
  'area-radius': HTMLInputElement;
  'area-reason': HTMLInputElement;
  banner: HTMLDetailsElement;
  csv: HTMLAnchorElement;
  events: HTMLCanvasElement;
  find: HTMLInputElement;
  ground: HTMLCanvasElement;
  help: HTMLDialogElement;
  json: HTMLAnchorElement;
  kind: HTMLSelectElement;
  notify: HTMLInputElement;
  q: HTMLInputElement;
  range: HTMLInputElement;
  scrub: HTMLInputElement;
  sound: HTMLInputElement;
  span: HTMLSelectElement;
  spark: HTMLCanvasElement;
  speed: HTMLSelectElement;
  units: HTMLSelectElement;
  when: HTMLSelectElement;
}
type ElementOf<Id extends string> = Id extends keyof Elements ? Elements[Id] : HTMLElement;

/** The element that `el('button.ack.big')` makes. */
type Made<What extends string> = What extends `${infer Tag}.${string}` ? Tagged<Tag> : Tagged<What>;
type Tagged<Tag> = Tag extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[Tag] : HTMLElement;
type Child = Node | string | null | undefined;

// -- what the scripts hand to each other ------------------------------------------------------------------------

/** Where each row is on the screen [px], and in which order rows get a label. */
interface Spots {
  x: Float32Array;
  y: Float32Array;
  order: number[];
}

/** The times of pictures, newest first, and each of them, to be read at once. */
interface Trail {
  times: number[];
  picture: (index: number) => Picture;
}

/** Name, value, what it means, and the exact value. */
type Fact = [name: string, value: string, meaning?: string, exact?: string];

/** Distance, height and time at the closest approach of a pair, and where they are written. */
interface PairText {
  x: number;
  y: number;
  words: string;
  rank: number;
  emphasis: boolean;
}

/** Numbers through time; null and NaN: not known. */
type Values = (number | null)[];

interface AlarmSpan {
  from: number;
  to: number;
  rank: number;
}

/** How a chart looks; see lineChart. */
interface Look {
  limit?: number;
  floor?: number;
  at?: number;
  from?: number;
  to?: number;
  spans?: AlarmSpan[];
  words?: (v: number) => string;
}

interface Chart {
  t: number[];
  v: Values;
  look: Look;
}

/** One vehicle through the history, from when to when, and when it had alarms. */
interface VehicleStory {
  id: string;
  from: number;
  to: number;
  track: VehicleTrack | null;
  scores: Channels | null;
  residuals: Channels | null;
  spans: AlarmSpan[];
}

/** The elements of one row of the table of vehicles, and whom it shows now. */
interface TableRow {
  line: HTMLElement;
  star: HTMLButtonElement;
  name: HTMLButtonElement;
  cells: HTMLElement[];
  id: string;
}

/** The elements of one alarm in the list, and what they show now. */
interface Item {
  li: HTMLLIElement;
  open: HTMLButtonElement;
  top: HTMLElement;
  kind: HTMLElement;
  who: HTMLElement;
  sub: HTMLElement;
  when: HTMLElement;
  ack: HTMLButtonElement;
  accept: HTMLButtonElement;
  fold: HTMLButtonElement;
  about: HTMLElement;
  told: HTMLElement;
  shape: SVGSVGElement | null;
  version: string;
  story: string;
  /** The moment that the story is told of. */
  of: string;
}

interface Window {
  watchkeeper: App;
}

// -- reports: daemon/report/data.py, series.py ------------------------------------------------------------------

/** One column in bins of `w` seconds from `t` on; `lo` and `hi` are base64 of 16-bit steps between `min` and `max`. */
interface Line {
  name: string;
  t: number;
  w: number;
  min: number;
  max: number;
  lo: string;
  hi?: string;
}

interface Unpacked {
  lo: Float64Array;
  hi: Float64Array;
}

interface Plot {
  group: string;
  title: string;
  unit: string;
  meaning: string;
  limit?: number;
  told?: boolean;
  lines: Line[];
}

/** Positions at bins `i`; `box` is west, east, south, north in metres. */
interface Track {
  t: number;
  w: number;
  i: string;
  x: string;
  y: string;
  box: [number, number, number, number];
}

interface Path {
  t: Float64Array;
  x: Float64Array;
  y: Float64Array;
}

interface Vehicle {
  row: number;
  name: string;
  id: string;
  aircraft: boolean;
  earth: boolean;
  track: Track | null;
  spans?: { what: 'mode' | 'armed' | 'failsafe'; word: string; t0: number; t1: number }[];
  marks?: { t: number; words: string }[];
  plots?: Plot[];
}

/** An alarm as a span of time; `of` are places in the list of vehicles. */
interface Span {
  id: string;
  kind: string;
  severity: Severity;
  who: string;
  of: number[];
  t0: number;
  t1: number;
  worst: number;
  active: boolean;
}

interface ReportData {
  t0: number;
  t1: number;
  unix: boolean;
  middle: [lat: number, lon: number] | null;
  degree_m: number;
  every: number;
  vehicles: Vehicle[];
  alarms: Span[];
}

interface MapBox {
  width: number;
  height: number;
  scale: number;
  px(x: number): number;
  py(y: number): number;
  worldX(px: number): number;
  worldY(py: number): number;
}
