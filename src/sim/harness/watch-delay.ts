import type { Clock } from "../../kernel/clock.ts";
import type { WireSink, WireStream } from "../../kernel/wire.ts";

/** How late the news of a watch are, and whether they come at all. */
export interface WatchWeather {
  lagMs: number;
  /** Open watches end as soon as something comes, and have to begin anew. */
  isBroken: boolean;
  /** Everything is told twice. */
  isDoubled: boolean;
}

/** A watch whose news come late but in order: what its reader sees is old. */
export function delayed(stream: WireStream, weather: WatchWeather, clock: Clock): WireStream {
  return {
    start: (sink) => {
      const late = new LateSink(sink, weather, clock);
      const leave = stream.start(late);
      late.onBreak = leave;
      return () => {
        late.isLeft = true;
        leave();
      };
    },
  };
}

class LateSink implements WireSink {
  readonly #sink: WireSink;
  readonly #weather: WatchWeather;
  readonly #clock: Clock;
  /** News may not overtake each other, also when the lag grows smaller. */
  #lastMs = 0;
  isLeft = false;
  onBreak: () => void = () => undefined;

  constructor(sink: WireSink, weather: WatchWeather, clock: Clock) {
    this.#sink = sink;
    this.#weather = weather;
    this.#clock = clock;
  }

  write(chunk: Uint8Array): void {
    if (this.#weather.isBroken) return this.#break();
    this.#later(() => this.#sink.write(chunk));
    if (this.#weather.isDoubled) this.#later(() => this.#sink.write(chunk));
  }

  end(): void {
    this.#later(() => this.#sink.end());
  }

  bufferedBytes(): number {
    return this.#sink.bufferedBytes();
  }

  #break(): void {
    if (this.isLeft) return;
    this.isLeft = true;
    this.onBreak();
    this.#sink.end();
  }

  #later(act: () => void): void {
    const nowMs = this.#clock.monotonicMs();
    this.#lastMs = Math.max(this.#lastMs, nowMs + this.#weather.lagMs);
    if (this.#lastMs <= nowMs) return act();
    this.#clock.after(this.#lastMs - nowMs, () => {
      if (!this.isLeft) act();
    });
  }
}
