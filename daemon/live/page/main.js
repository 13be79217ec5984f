// The page: holds what is known, decides what is shown, and connects the parts. Each part has a file of its own.

import { Address } from './address.js';
import { AlarmList } from './alarmlist.js';
import { AreaTool } from './area.js';
import { Alarms, marksOf } from './alarms.js';
import { StreamClock } from './clock.js';
import { Banner } from './banner.js';
import { begin } from './beginning.js';
import { controls, markWorlds, PANES, worldButtons, worldOf } from './controls.js';
import { announce, by, setText } from './dom.js';
import { EARTH, Fleet, LOCAL } from './fleet.js';
import { Header } from './header.js';
import { History } from './history.js';
import { keyboard } from './keys.js';
import { MapView } from './map.js';
import { NetworkPane } from './network.js';
import { onTheme } from './palette.js';
import { Past } from './past.js';
import { Playback } from './playback.js';
import { Prefs } from './prefs.js';
import { pairRanks } from './scene.js';
import { Search } from './search.js';
import { Shelves } from './shelves.js';
import { FleetTable } from './table.js';
import { Timeline } from './timeline.js';
import { clock } from './units.js';
import { VehiclePane } from './vehicle.js';
import { WatchList } from './watchlist.js';
import { decode, Wire } from './wire.js';

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
    /** Whether this is a log that is played, not what happens now. */
    this.recorded = false;
    /** The map goes to the chosen alarm as soon as its vehicles are there. */
    this.wantsToGo = false;
    /** @type {(a: string, b: string) => number} */
    this.rankOfPair = (a, b) => this.pairRanks.get(a < b ? `${a}~${b}` : `${b}~${a}`) ?? -1;
    /** @type {Map<string, number>} */
    this.pairRanks = new Map();
    this.header = new Header();
    this.banner = new Banner();
    this.address = new Address(this);
    this.past = new Past(this);
    this.playback = new Playback(this);
    this.timeline = new Timeline(this);
    this.search = new Search(this);
    this.watch = new WatchList();
    this.list = new AlarmList(this);
    this.table = new FleetTable(this);
    this.vehicle = new VehiclePane(this);
    this.network = new NetworkPane(this);
    this.prefs = new Prefs(this);
    this.shelves = new Shelves(this);
    this.area = new AreaTool(this);
    this.map = new MapView(by('ground'), by('air'), this);
    controls(this);
    keyboard(this);
    onTheme(() => this.timeline.render());
    this.wire = new Wire({
      picture: (buffer) => this.picture(buffer),
      message: (message) => this.message(message),
      state: (word, detail) => this.header.state(word, detail),
    });
    void begin(this);
    setInterval(() => this.timeline.paused === null && this.list.render(), 1000);
  }

  // -- what comes in ------------------------------------------------------------------------------------------

  /** @type {(buffer: ArrayBuffer) => void} */
  picture(buffer) {
    const picture = decode(buffer);
    if ((this.newest?.t ?? null) === null && picture.t !== null) this.timeline.soon(0);
    this.newest = picture;
    this.clock.read(picture.t_now);
    this.fleet.pace = Math.max(1, this.clock.rate);
    this.history.add(buffer, picture);
    this.header.take(picture, this.recorded);
    this.banner.take(picture, this.recorded, this.prefs.troubles());
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
        // these come again whenever a shelf was put up or taken down
        void this.shelves.refresh();
        if (message.recorded && !this.recorded) void this.playback.look();
        this.recorded = message.recorded;
        setText(by('version'), `Watchkeeper ${message.version}`);
        // a log that is played again has samples instead of messages, and no other pages
        setText(by('f-rate-name'), message.recorded ? 'samples/s' : 'messages/s');
        by('pages').hidden = message.recorded;
        setText(by('live'), message.recorded ? 'end' : 'live');
        document.body.classList.toggle('recorded', message.recorded);
        this.alarmsChanged();
        break;
      case 'news': {
        const fresh = message.news.map((news) => this.alarms.take(news)).filter((alarm) => alarm !== null);
        for (const alarm of fresh) {
          setText(by('say'), `${alarm.event.severity}: ${alarm.say}`);
          this.prefs.raised(alarm);
        }
        this.alarmsChanged(fresh.length > 0);
        if (fresh.length) this.timeline.soon();
        break;
      }
      case 'roster':
        if (message.reset && message.era !== this.era) this.history.clear();
        this.era = message.era;
        this.fleet.live.take(message);
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

  /**
   * The alarms at the moment that is shown, in order.
   * @type {() => AlarmRow[]}
   */
  rows() {
    const { paused } = this.timeline;
    return paused === null ? this.alarms.list() : this.past.rowsAt(paused) ?? this.alarms.list(paused);
  }

  /**
   * A moment of the past is here: its alarms, and its picture where this tab has none.
   * @type {(picture: Picture | null) => void}
   */
  pastCame(picture) {
    if (picture) this.shown(picture);
    this.alarmsChanged();
    this.vehicle.render();
    if (this.wantsToGo && this.chosen !== null) {
      this.wantsToGo = false;
      const subjects = this.chosenSubjects();
      if (subjects) this.map.goTo(subjects);
    }
    if (this.past.problem) announce(this.past.problem);
  }

  /** @type {(picture: Picture) => void} */
  shown(picture) {
    this.fleet.show(picture);
    this.map.range.take(this.fleet);
    if (this.recorded) setText(by('f-vehicles'), picture.rows.toLocaleString('en'));
    this.mark();
    this.worlds();
    if (this.timeline.paused !== null) this.listSoon(true);
    this.vehicle.render();
    this.table.render();
    setText(by('map-words'), `${picture.rows} vehicles at ${clock(picture.t)}`);
  }

  mark() {
    const rows = this.rows();
    this.marks = marksOf(rows);
    this.pairRanks = pairRanks(rows);
    markWorlds(this);
    this.map.refresh();
  }

  /** @type {(at_once?: boolean) => void} */
  alarmsChanged(at_once = true) {
    this.mark();
    this.header.alarms(this.recorded ? this.rows() : this.alarms.list());
    this.search.links();
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
    this.table.render();
    if (go && id) this.map.goTo([id]);
    if (open && id) this.showPane('vehicle');
    this.vehicle.render();
    this.map.stale = true;
    this.address.changed(true);
  }

  /**
   * An alarm by its id: as it was at the moment that is shown, else as a search found it.
   * @type {(id: string | null) => Alarm | undefined}
   */
  alarm(id) {
    return this.rows().find(({ alarm }) => alarm.id === id)?.alarm ?? this.search.found.find((alarm) => alarm.id === id) ?? this.alarms.all.get(id ?? '');
  }

  /**
   * Open an alarm in the list, and show on the map whom it is about; `jump`: at the moment when it was raised.
   * @type {(id: string | null, how?: { jump?: boolean }) => boolean}
   */
  choose(id, { jump = false } = {}) {
    const before = this.chosen;
    this.chosen = id;
    const alarm = this.alarm(id);
    if (alarm && jump) {
      if (this.recorded && this.timeline.paused === null) this.playback.pause();
      this.wantsToGo = true;
      this.timeline.show(alarm.event.t_raised, { push: true });
    }
    if (alarm) {
      this.follow(false);
      this.map.goTo(alarm.event.subjects);
      const { kind, subjects } = alarm.event;
      // a place or a part of Watchkeeper is no vehicle, everything else is about one, whether it has been drawn yet or not
      this.select(kind === 'gnss_interference' || (kind === 'watch' && subjects.length > 1) ? null : subjects.find((name) => this.fleet.slots.has(name)) ?? subjects[0]);
    }
    this.list.render();
    this.map.stale = true;
    this.address.changed(true);
    return before !== null && id === null;
  }

  /** @type {() => string[] | null} */
  chosenSubjects() {
    return this.chosen === null ? null : this.alarm(this.chosen)?.event.subjects ?? null;
  }

  toggleWatch() {
    if (this.selected) this.watch.toggle(this.selected);
    this.table.render();
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
    this.address.changed(true);
    this.vehicle.render();
    this.table.render();
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
    by('legend').hidden = by('credit').hidden = by('area').hidden = world !== EARTH;
    for (const button of worldButtons()) button.setAttribute('aria-pressed', String(worldOf(button) === world));
  }

  otherWorld() {
    const other = this.map.world === EARTH ? LOCAL : EARTH;
    if (this.fleet.count[other]) this.showWorld(other);
  }
}

window.watchkeeper = new App();
