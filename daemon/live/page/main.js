// The page: holds what is known, decides what is shown, and connects the parts. Each part has a file of its own.

import { AlarmList } from './alarmlist.js';
import { Alarms } from './alarms.js';
import { controls, PANES, worldButtons, worldOf } from './controls.js';
import { by, setText } from './dom.js';
import { EARTH, Fleet, LOCAL } from './fleet.js';
import { Header } from './header.js';
import { History } from './history.js';
import { keyboard } from './keys.js';
import { MapView } from './map.js';
import { NetworkPane } from './network.js';
import { onTheme } from './palette.js';
import { StreamClock, Timeline } from './timeline.js';
import { clock, known } from './units.js';
import { VehiclePane } from './vehicle.js';
import { accept, acknowledge, decode, Wire } from './wire.js';

const LIST_MS = 250;

export class App {
  constructor() {
    this.fleet = new Fleet();
    this.alarms = new Alarms();
    this.history = new History();
    this.clock = new StreamClock();
    /** @type {Map<string, { rank: number, open: boolean }>} by vehicle */
    this.marks = new Map();
    /** @type {string | null} */
    this.selected = null;
    /** @type {string | null} */
    this.chosen = null;
    this.following = false;
    /** @type {Picture | null} */
    this.newest = null;
    /** @type {number | null} */
    this.due = null;
    this.era = '';
    /** @type {(a: string, b: string) => number} */
    this.rankOfPair = (a, b) => this.pairRanks.get(a < b ? `${a}~${b}` : `${b}~${a}`) ?? -1;
    /** @type {Map<string, number>} */
    this.pairRanks = new Map();
    this.header = new Header();
    this.timeline = new Timeline(this);
    this.list = new AlarmList(this);
    this.vehicle = new VehiclePane(this);
    this.network = new NetworkPane(this);
    this.map = new MapView(by('ground'), by('air'), this);
    controls(this);
    keyboard(this);
    onTheme(() => this.timeline.render());
    this.wire = new Wire({
      picture: (buffer) => this.picture(buffer),
      message: (message) => this.message(message),
      state: (word, detail) => this.header.state(word, detail),
    });
    setInterval(() => this.timeline.paused === null && this.list.render(), 1000);
  }

  // -- what comes in ------------------------------------------------------------------------------------------

  /** @type {(buffer: ArrayBuffer) => void} */
  picture(buffer) {
    const picture = decode(buffer);
    this.newest = picture;
    this.clock.read(picture.t_now);
    this.history.add(buffer, picture);
    this.header.take(picture);
    if (this.timeline.paused === null) this.shown(picture);
    this.timeline.render();
    const waiting = picture.rows ? '' : picture.state[0] ?? 'No vehicle has sent a position yet.';
    by('empty').hidden = !waiting;
    setText(by('empty'), waiting);
  }

  /** @type {(message: Message) => void} */
  message(message) {
    switch (message.type) {
      case 'alarms':
        this.alarms.reset(message);
        setText(by('version'), `Watchkeeper ${message.version}`);
        // a log that is played again has samples instead of messages, and no other pages
        setText(by('f-rate-name'), message.recorded ? 'samples/s' : 'messages/s');
        by('pages').hidden = message.recorded;
        this.alarmsChanged();
        break;
      case 'news': {
        const fresh = message.news.map((news) => this.alarms.take(news)).filter((alarm) => alarm !== null);
        for (const { event, say } of fresh) setText(by('say'), `${event.severity}: ${say}`);
        this.alarmsChanged(fresh.length > 0);
        break;
      }
      case 'roster':
        if (message.reset && message.era !== this.era) this.history.clear();
        this.era = message.era;
        this.fleet.roster(message);
        this.namesChanged();
        break;
      case 'vehicle': this.vehicle.take(message); break;
      case 'network': this.network.take(message); break;
      default:
    }
  }

  // -- what is shown ------------------------------------------------------------------------------------------

  /** Event time of what is on the screen: carried on between pictures, or where the slider is. */
  now() {
    return this.timeline.paused ?? this.clock.now();
  }

  /** The moment of the slider; undefined while live. */
  shownTime() {
    return this.timeline.paused ?? undefined;
  }

  historyAt() {
    const { entries } = this.history;
    return entries.length && this.timeline.paused !== null ? this.history.find(this.timeline.paused) : entries.length - 1;
  }

  /** @type {(picture: Picture) => void} */
  shown(picture) {
    this.fleet.show(picture);
    this.mark();
    this.worlds();
    if (this.timeline.paused !== null) this.listSoon(true);
    this.vehicle.render();
    setText(by('map-words'), `${picture.rows} vehicles at ${clock(picture.t)}`);
  }

  mark() {
    const t = this.shownTime();
    this.marks = this.alarms.byVehicle(t);
    this.pairRanks.clear();
    for (const { alarm, state, rank } of this.alarms.list(t)) {
      const { kind, subjects } = alarm.event;
      if (state === 'cleared' || (kind !== 'conflict' && kind !== 'los')) continue;
      const key = [...subjects].sort().join('~');
      this.pairRanks.set(key, Math.max(rank, this.pairRanks.get(key) ?? -1));
    }
    this.map.refresh();
  }

  /**
   * Areas of interference that are active at the moment shown.
   * @type {() => Area[]}
   */
  areas() {
    return this.alarms.list(this.shownTime()).filter(({ alarm, state }) => alarm.event.kind === 'gnss_interference' && state !== 'cleared')
      .flatMap(({ alarm: { event: { evidence: { lat, lon, radius_km } } } }) => (known(lat) && known(lon) && known(radius_km) ? [{ lat, lon, radius_km }] : []));
  }

  /** @type {(at_once?: boolean) => void} */
  alarmsChanged(at_once = true) {
    this.mark();
    this.header.alarms(this.alarms.list());
    this.listSoon(at_once);
    this.network.render();
  }

  /**
   * Redraw the list: new alarms at once, mere updates a few times a second.
   * @type {(at_once: boolean) => void}
   */
  listSoon(at_once) {
    if (at_once) {
      if (this.due !== null) clearTimeout(this.due);
      this.due = null;
      this.list.render();
    } else if (this.due === null) {
      this.due = setTimeout(() => this.listSoon(true), LIST_MS);
    }
  }

  namesChanged() {
    this.listSoon(false);
    this.map.stale = true;
  }

  /** @type {(id: string) => string} */
  nameOf(id) {
    const slot = this.fleet.slots.get(id);
    return slot === undefined ? id : this.fleet.ids.get(slot)?.callsign || id;
  }

  // -- what the user does -------------------------------------------------------------------------------------

  /** @type {(id: string | null, how?: { go?: boolean, open?: boolean }) => void} */
  select(id, { go = false, open = false } = {}) {
    this.selected = id;
    this.vehicle.detail = null;
    if (!id) this.follow(false);
    this.wire.ask({ select: id });
    if (go && id) this.map.goTo([id]);
    if (open && id) this.showPane('vehicle');
    this.vehicle.render();
    this.map.stale = true;
  }

  /**
   * Open an alarm in the list, and show on the map whom it is about.
   * @type {(id: string | null) => boolean}
   */
  choose(id) {
    const before = this.chosen;
    this.chosen = id;
    const alarm = id === null ? undefined : this.alarms.all.get(id);
    if (alarm) {
      this.follow(false);
      this.map.goTo(alarm.event.subjects);
      const { kind, subjects } = alarm.event;
      // a place or a part of Watchkeeper is no vehicle, everything else is about one, whether it has been drawn yet or not
      this.select(kind === 'gnss_interference' || (kind === 'watch' && subjects.length > 1) ? null : subjects.find((name) => this.fleet.slots.has(name)) ?? subjects[0]);
    }
    this.list.render();
    this.map.stale = true;
    return before !== null && id === null;
  }

  /** @type {() => string[] | null} */
  chosenSubjects() {
    return this.chosen === null ? null : this.alarms.all.get(this.chosen)?.event.subjects ?? null;
  }

  /**
   * The next or previous alarm of the list.
   * @type {(step: number) => void}
   */
  walk(step) {
    const ids = this.list.shown().map(({ alarm }) => alarm.id);
    if (!ids.length) return;
    const at = this.chosen === null ? -1 : ids.indexOf(this.chosen);
    const next = ids[at < 0 ? 0 : Math.max(0, Math.min(ids.length - 1, at + step))];
    this.showPane('alarms');
    this.choose(next);
    this.list.rows.get(next)?.open.focus();
    this.list.rows.get(next)?.li.scrollIntoView({ block: 'nearest' });
  }

  /** @type {(id: string) => Promise<void>} */
  async acknowledge(id) {
    const alarm = this.alarms.all.get(id);
    if (!alarm) return;
    const on = !alarm.ack;
    const done = await acknowledge(id, on).catch(() => false);
    setText(by('say'), done ? (on ? 'acknowledged' : 'acknowledgement taken back') : 'the daemon did not take it');
  }

  /** @type {(id: string) => Promise<void>} */
  async accept(id) {
    const refused = await accept(id).catch(() => 'the daemon did not take it');
    setText(by('say'), refused || 'accepted: the alarm has ended');
  }

  /** @type {(on: boolean) => void} */
  follow(on) {
    this.following = on && Boolean(this.selected);
    by('follow').setAttribute('aria-pressed', String(this.following));
    if (this.following && this.selected) this.map.goTo([this.selected]);
  }

  /** @type {(name: Pane) => void} */
  showPane(name) {
    for (const pane of PANES) {
      by(`pane-${pane}`).hidden = pane !== name;
      by(`tab-${pane}`).setAttribute('aria-selected', String(pane === name));
      by(`tab-${pane}`).tabIndex = pane === name ? 0 : -1;
    }
    this.wire.ask({ network: name === 'network' });
    this.vehicle.render();
    this.network.render();
  }

  worlds() {
    const { earth, local } = this.fleet.count;
    by('worlds').hidden = !(earth && local);
    setText(by('n-earth'), String(earth));
    setText(by('n-local'), String(local));
    if (!this.fleet.count[this.map.world] && earth + local) this.showWorld(earth ? EARTH : LOCAL);
  }

  /** @type {(world: World) => void} */
  showWorld(world) {
    if (this.map.world === world) return;
    this.map.switchTo(world);
    by('legend').hidden = world !== EARTH;
    for (const button of worldButtons()) button.setAttribute('aria-pressed', String(worldOf(button) === world));
  }

  otherWorld() {
    const other = this.map.world === EARTH ? LOCAL : EARTH;
    if (this.fleet.count[other]) this.showWorld(other);
  }
}

window.watchkeeper = new App();
