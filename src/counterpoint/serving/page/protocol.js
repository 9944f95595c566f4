/**
 * One session with the server, over as many connections as it takes.
 *
 * Owns: the socket, resuming, back-off, the cursor, what is read twice, acknowledgements and heartbeats.
 * Does not own: numbers of what is said (`outbox.js`), what events mean to a person (`main.js` and the modules it
 * wires), what outlives a reload (`memory.js`).
 * Here because: nobody else on this page needs to know that connections break (wire contract, sections 1 to 3).
 *
 * A session is used once: after its end a new one is made, so that nothing of the old one can reach it.
 */

/** What a session can be in. `waiting`: for the next attempt to connect. */
export const State = Object.freeze({
  IDLE: "idle",
  CONNECTING: "connecting",
  OPEN: "open",
  WAITING: "waiting",
  LOST: "lost", // attempts are used up
  ENDED: "ended",
});

const CLOSED = 1000;
const REFUSED = 1008;
/** Another connection goes on with the session: taking it back would begin a fight, and our token is spent. */
const REPLACED = 4001;
/** Our own codes. Any but 1000 is a detach: the session lives on. */
const CUT = 3001;
const SILENT = 3002;

export const MAX_ATTEMPTS = 12;
const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 8000;
/** A connection that lived so long was a good one: the next outage starts counting anew. */
const STEADY_MS = 10000;

/** From the attempt to connect to the server's first word. */
const HANDSHAKE_MS = 10000;
const TICK_MS = 1000;
const HEARTBEAT_MS = 30000;
/** Without a word for so long, while something is owed to us, we ask; without an answer for so long, it is dead. */
const SILENCE_MS = 5000;
/** Bytes in the socket: what is beyond them waits where it can still be dropped. */
const MAX_BUFFERED = 64 * 1024;
const BACKPRESSURE_MS = 250;

export const systemClock = {
  now: () => performance.now(),
  after(ms, action) {
    const timer = setTimeout(action, ms);
    return () => clearTimeout(timer);
  },
};

export class Session {
  /** `{id, token}` once there is a session. */
  credentials = null;
  /** Newest `server_event_seq` that was read. */
  cursor = 0;
  /** Newest `server_event_seq` that need never be sent again, whatever happens to this page; set by the owner. */
  processed = 0;
  /** Events that were read before, numbers that never came: both are 0 unless a promise is broken. */
  duplicates = 0;
  holes = 0;
  /** Connections that took the session up again. */
  resumes = 0;

  #url;
  #outbox;
  #onEvent;
  #onState;
  #openSocket;
  #clock;
  #random;
  #state = { name: State.IDLE };
  #socket = null;
  #ready = false; // the server has answered the handshake of this connection
  #replay = "full";
  #end = null; // the event that ended the session
  #refusal = null; // the last error of this connection
  #attempts = 0;
  #openedAt = 0;
  #heardAt = 0;
  #beatAt = 0;
  #acknowledged = 0;
  #pausedUntil = 0;
  #cancelTimer = () => {};

  /**
   * `openSocket(url)` opens a WebSocket; `onEvent(event)` gets each event once, in order; `onState(state)` each
   * change of `state`.
   */
  constructor({ url, outbox, onEvent, onState, openSocket, clock = systemClock, random = Math.random }) {
    this.#url = url;
    this.#outbox = outbox;
    this.#onEvent = onEvent;
    this.#onState = onState;
    this.#openSocket = openSocket;
    this.#clock = clock;
    this.#random = random;
  }

  /** `{name, ...}`: with `delayMs` if waiting, `reason` and `message` if ended or waiting for a slot. */
  get state() {
    return this.#state;
  }

  // ---------------------------------------------------------------- what the owner does

  /** Open a session. What was said before waits for it. */
  start() {
    if (this.#state.name === State.IDLE) this.#connect();
  }

  /** Take up a session of an earlier page, whose player is gone: audio that was not heard is sent again. */
  resume({ id, token, cursor }) {
    if (this.#state.name !== State.IDLE) return;
    this.credentials = { id, token };
    this.cursor = this.processed = cursor;
    this.#replay = "from_playhead";
    this.#connect();
  }

  /** Say something that must arrive exactly once; `ms` is the length of speech in it. */
  say(event, ms = 0) {
    if (this.#state.name === State.ENDED) return;
    this.#outbox.put(event, ms);
    this.#pump();
  }

  /** Say something that the next of its kind replaces: it is lost with its connection, or without one. */
  mention(event) {
    if (this.#ready) this.#socket.send(JSON.stringify(event));
  }

  /** Connect now: the user asks for it, or the network is back. */
  retry() {
    if (![State.WAITING, State.LOST].includes(this.#state.name)) return;
    if (this.#state.name === State.LOST) this.#attempts = 0;
    this.#connect();
  }

  /** Drop the connection as a bad network would, and stay away for `outageMs`. */
  cut(outageMs) {
    if (this.#state.name !== State.OPEN) return;
    this.#abandon(CUT);
    this.#wait(outageMs);
  }

  /** End the session. */
  close() {
    if (this.#state.name === State.ENDED) return;
    this.#abandon(CLOSED);
    this.#become({ name: State.ENDED, reason: "client_closed" });
  }

  // ---------------------------------------------------------------- connections

  #connect() {
    this.#abandon(SILENT);
    this.#become({ name: State.CONNECTING, again: this.credentials !== null });
    this.#refusal = null;
    const socket = this.#openSocket(this.#url + (this.credentials ? "?duplex=1&autostart=0" : "?duplex=1"));
    this.#socket = socket;
    const ifCurrent = (action) => (argument) => socket === this.#socket && action(argument);
    socket.onopen = ifCurrent(() => this.credentials && socket.send(JSON.stringify(this.#resumption())));
    socket.onmessage = ifCurrent(({ data }) => this.#receive(JSON.parse(data)));
    socket.onclose = ifCurrent(({ code }) => this.#disconnected(code));
    this.#cancelTimer = this.#clock.after(HANDSHAKE_MS, () => this.#giveUp());
  }

  #resumption() {
    return {
      type: "session.resume",
      session_id: this.credentials.id,
      resume_token: this.credentials.token,
      last_received_server_event_seq: this.cursor,
      replay: this.#replay,
    };
  }

  /** The peer says nothing: do not wait for the network to notice. */
  #giveUp() {
    this.#abandon(SILENT);
    this.#wait();
  }

  /** Have nothing to do with the present socket, or timer, any more. */
  #abandon(code) {
    this.#cancelTimer();
    this.#ready = false;
    const socket = this.#socket;
    this.#socket = null;
    socket?.close(code);
  }

  #disconnected(code) {
    const wasSteady = this.#ready && this.#clock.now() - this.#openedAt >= STEADY_MS;
    this.#abandon();
    if (wasSteady) this.#attempts = 0;
    const { code: reason, message, retry_after_ms: retryMs } = this.#refusal ?? {};
    if (this.#end) this.#become({ name: State.ENDED, reason: this.#end.reason });
    else if (code === REPLACED) this.#become({ name: State.ENDED, reason: "replaced" });
    else if (code === CLOSED || code === REFUSED || reason === "session_open_failed")
      this.#become({ name: State.ENDED, reason, message });
    else this.#wait(retryMs, reason);
  }

  /** Exponential back-off with jitter, not before `leastMs`. */
  #wait(leastMs = 0, reason = null) {
    if (this.#attempts >= MAX_ATTEMPTS) {
      this.#become({ name: State.LOST, reason });
      return;
    }
    const longest = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** this.#attempts);
    const delayMs = Math.max(leastMs, longest * (0.5 + this.#random() / 2));
    this.#attempts += 1;
    this.#become({ name: State.WAITING, delayMs, reason });
    this.#cancelTimer = this.#clock.after(delayMs, () => this.#connect());
  }

  #become(state) {
    this.#state = state;
    this.#onState(state);
  }

  // ---------------------------------------------------------------- reading

  #receive(event) {
    this.#heardAt = this.#clock.now();
    const number = event.server_event_seq;
    if (number <= this.cursor) {
      this.duplicates += 1;
      return;
    }
    if (number !== undefined) this.holes += number - this.cursor - 1;
    this.#follow(event);
    this.#onEvent(event);
    if (number !== undefined) this.cursor = number;
  }

  /** What concerns the session as such. */
  #follow(event) {
    switch (event.type) {
      case "session.created":
        this.#opened(event.session.id, event.resume_token);
        break;
      case "session.resumed":
        this.resumes += 1;
        this.#outbox.rewind(event.last_client_event_seq + 1);
        this.#opened(event.session_id, event.resume_token);
        break;
      case "session.skipped":
        this.cursor = Math.max(this.cursor, event.to);
        break;
      case "session.snapshot":
        this.cursor = event.as_of_server_event_seq;
        break;
      case "session.input_ack":
        this.#outbox.acknowledge(event.client_event_seq);
        break;
      case "session.replaced":
        this.#end = { reason: "replaced" };
        break;
      case "session.closed":
      case "session.expired":
        this.#end = event;
        break;
      case "error":
        this.#refused(event.error);
        break;
    }
  }

  #opened(id, token) {
    this.credentials = { id, token };
    this.#ready = true;
    this.#replay = "full"; // from here on the player has what was read
    this.#openedAt = this.#beatAt = this.#clock.now();
    this.#pausedUntil = 0;
    this.#acknowledged = -1; // the first acknowledgement also proves that the new token has arrived
    this.#become({ name: State.OPEN });
    this.#tick();
  }

  #refused(error) {
    this.#refusal = error;
    if (error.code === "client_event_gap") {
      this.#outbox.rewind(error.expected);
      this.#pump();
    } else if (error.code === "input_backpressure") {
      this.#pausedUntil = this.#clock.now() + (error.retry_after_ms ?? BACKPRESSURE_MS);
    }
  }

  // ---------------------------------------------------------------- writing

  #pump() {
    while (this.#ready && this.#clock.now() >= this.#pausedUntil && this.#socket.bufferedAmount < MAX_BUFFERED) {
      const event = this.#outbox.take();
      if (event === null) return;
      this.#socket.send(JSON.stringify(event));
    }
  }

  /** Once a second while connected. */
  #tick() {
    this.#cancelTimer();
    if (this.#isDead()) {
      this.#giveUp();
      return;
    }
    this.#acknowledge();
    this.#beat();
    this.#pump();
    this.#cancelTimer = this.#clock.after(TICK_MS, () => this.#tick());
  }

  #isDead() {
    return this.#beatAt > this.#heardAt && this.#clock.now() - this.#beatAt >= SILENCE_MS;
  }

  #acknowledge() {
    if (this.processed <= this.#acknowledged) return;
    this.#acknowledged = this.processed;
    this.mention({ type: "session.event_ack", server_event_seq: this.processed });
  }

  #beat() {
    const now = this.#clock.now();
    const isDue = now - this.#beatAt >= HEARTBEAT_MS;
    const isUneasy = this.#outbox.awaits && now - this.#heardAt >= SILENCE_MS && this.#beatAt <= this.#heardAt;
    if (!isDue && !isUneasy) return;
    this.#beatAt = now;
    this.mention({ type: "session.heartbeat" });
  }
}
