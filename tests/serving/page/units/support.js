// What the unit tests share. Evaluated before each of them, in the page.

function equal(actual, expected, what = "") {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} got ${a}, expected ${b}`);
}

function ok(condition, what) {
  if (!condition) throw new Error(what);
}

/** Time that stands still until a test moves it. */
class FakeClock {
  #now = 0;
  #timers = [];

  now() {
    return this.#now;
  }

  after(ms, action) {
    const timer = { at: this.#now + ms, action };
    this.#timers.push(timer);
    return () => (this.#timers = this.#timers.filter((other) => other !== timer));
  }

  /** Run what falls due within `ms`, in order. */
  advance(ms) {
    const end = this.#now + ms;
    for (;;) {
      const due = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      this.#timers = this.#timers.filter((timer) => timer !== due);
      this.#now = due.at;
      due.action();
    }
    this.#now = end;
  }
}

/** A WebSocket whose other end is the test. */
class FakeSocket {
  sent = [];
  bufferedAmount = 0;
  closedWith = null;

  constructor(url) {
    this.url = url;
  }

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close(code) {
    this.closedWith = code ?? null;
  }

  say(...events) {
    for (const event of events) this.onmessage({ data: JSON.stringify(event) });
  }

  drop(code = 1006) {
    this.onclose({ code });
  }

  types() {
    return this.sent.map(({ type }) => type);
  }
}

const CREATED = { type: "session.created", session: { id: "sess_1" }, resume_token: "token1" };

const resumed = (token, last = 0) => ({
  type: "session.resumed",
  session_id: "sess_1",
  resume_token: token,
  last_client_event_seq: last,
  session: {},
});

const numbered = (number, type = "some.event") => ({ type, server_event_seq: number });
