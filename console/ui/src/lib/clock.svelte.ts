// The time of the server, which decides, once a second.

class Clock {
  /** Milliseconds since 1970. */
  now = $state(Date.now());
  private offset = 0;

  constructor() {
    const tick = () => {
      this.now = Date.now() + this.offset;
      setTimeout(tick, 1000 - (this.now % 1000));
    };
    tick();
  }

  /** Learns the server's time from an answer; less than two seconds is no difference. */
  learn(response: Response) {
    const said = Date.parse(response.headers.get('Date') ?? '');
    if (Number.isNaN(said)) return;
    const offset = said + 500 - Date.now();
    this.offset = Math.abs(offset) < 2000 ? 0 : offset;
  }

  get exact() {
    return Date.now() + this.offset;
  }
}

export const clock = new Clock();
