import { nodeOf, type PveReply, type PveRequest, type Send } from "./wire.ts";

/**
 * Keeps at most so many calls in flight per node. Every call blocks one of a node's three workers
 * (pvedaemon and pveproxy, `max_workers`), so more than two leave none for people.
 */
export function limited(send: Send, callsPerNode: number): Send {
  const gates = new Map<string, Gate>();
  return async (request: PveRequest): Promise<PveReply> => {
    const key = nodeOf(request.path) ?? "";
    const gate = gates.get(key) ?? { inFlight: 0, waiting: [] };
    gates.set(key, gate);
    await enter(gate, callsPerNode);
    try {
      return await send(request);
    } finally {
      leave(gate);
    }
  };
}

interface Gate {
  inFlight: number;
  readonly waiting: (() => void)[];
}

async function enter(gate: Gate, most: number): Promise<void> {
  if (gate.inFlight < most) {
    gate.inFlight++;
    return;
  }
  // The place of the one that leaves is handed over, so nobody can slip in between.
  await new Promise<void>((resolve) => gate.waiting.push(resolve));
}

function leave(gate: Gate): void {
  const next = gate.waiting.shift();
  if (next === undefined) gate.inFlight--;
  else next();
}
