import type { WireSink, WireStream } from "../../kernel/wire.ts";
import type { Recipient } from "./recipient.ts";
import { cutIfStalled } from "./recipient.ts";

/**
 * Connects a stream to its reader until either ends. The head leaves at once, also when there is
 * nothing to say yet: `kubectl wait` hangs, beyond its own timeout, until it has seen the head.
 */
export function sendStream(to: Recipient, stream: WireStream): void {
  const { response } = to;
  response.flushHeaders();
  let isOpen = true;
  const sink: WireSink = {
    write: (chunk) => {
      if (isOpen) response.write(chunk);
    },
    end: () => {
      if (!isOpen) return;
      isOpen = false;
      response.end();
      cutIfStalled(to);
    },
    // The length that the socket has not taken, encrypted or not yet.
    bufferedBytes: () => (isOpen ? response.writableLength : 0),
  };
  const stop = stream.start(sink);
  response.once("close", () => {
    isOpen = false;
    stop();
  });
}
