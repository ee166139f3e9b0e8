import type { WireRequest, WireResponse } from "../kernel/wire.ts";

/**
 * Carries one request to a server and resolves with the beginning of its answer; a body that goes
 * on is a stream. Rejects if no answer came: with a NetworkError `Unreachable` where it is certain
 * that the server did not get the request, with anything else where it is not.
 *
 * When the signal is aborted the request is given up, and so is a stream that came of it.
 */
export type Transport = (request: WireRequest, signal?: AbortSignal) => Promise<WireResponse>;

/** A transport to a server in the same process. */
export function inProcess(handle: (request: WireRequest) => Promise<WireResponse>): Transport {
  return async (request, signal) => {
    signal?.throwIfAborted();
    if (signal === undefined) return handle(request);
    return Promise.race([handle(request), rejectionOf(signal)]);
  };
}

/** Rejects with the signal's reason, as soon as it is aborted. */
export function rejectionOf(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  // Where the race is already decided nobody waits for this one.
  promise.catch(() => undefined);
  return promise;
}
