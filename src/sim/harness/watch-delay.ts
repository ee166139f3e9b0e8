import type { Clock } from "../../kernel/clock.ts";
import type { WireSink, WireStream } from "../../kernel/wire.ts";

/** How late the news of a watch are, and whether they come at all. */
export interface WatchWeather {
  lagMs: number;
  /** Only watches with this in their path are late; without it all of them. */
  lagsOnly?: string | undefined;
  /** Open watches end as soon as something comes, and have to begin anew. */
  isBroken: boolean;
  /** Everything is told twice. */
  isDoubled: boolean;
}

export interface Watch {
  readonly url: string;
  readonly stream: WireStream;
}

/** A watch whose news come late but in order: what its reader sees is old. */
export function delayed({ url, stream }: Watch, weather: WatchWeather, clock: Clock): WireStream {
  const lagMs = (): number => (url.includes(weather.lagsOnly ?? "") ? weather.lagMs : 0);
  return {
    start: (sink) => {
      const late = new LateSink(sink, { weather, lagMs }, clock);
      const leave = stream.start(late);
      late.onBreak = leave;
      return () => {
        late.isLeft = true;
        leave();
      };
    },
  };
}

interface Lateness {
  readonly weather: WatchWeather;
  readonly lagMs: () => number;
}

class LateSink implements WireSink {
  readonly #sink: WireSink;
  readonly #weather: WatchWeather;
  readonly #lagMs: () => number;
  readonly #clock: Clock;
  /** News may not overtake each other, also when the lag grows smaller. */
  #lastMs = 0;
  isLeft = false;
  onBreak: () => void = () => undefined;

  constructor(sink: WireSink, { weather, lagMs }: Lateness, clock: Clock) {
    this.#sink = sink;
    this.#weather = weather;
    this.#lagMs = lagMs;
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
    this.#lastMs = Math.max(this.#lastMs, nowMs + this.#lagMs());
    if (this.#lastMs <= nowMs) return act();
    this.#clock.after(this.#lastMs - nowMs, () => {
      if (!this.isLeft) act();
    });
  }
}
