import type { PveReply, PveRequest, Send } from "./wire.ts";

/**
 * Several endpoints of one cluster as one. Reads go on to the next endpoint when one cannot be
 * reached or does not answer; a write is sent once and never again, whatever became of it. The
 * endpoint that answered last is the first to be asked next time.
 */
export function failingOver(endpoints: readonly Send[]): Send {
  let current = 0;
  return async (request: PveRequest): Promise<PveReply> => {
    const isRead = request.method === "GET";
    let reply: PveReply = { type: "notSent", why: "unreachable", detail: "no endpoint" };
    for (let tried = 0; tried < endpoints.length; tried++) {
      const index = (current + (isRead ? tried : 0)) % endpoints.length;
      const send = endpoints[index];
      if (send === undefined) return reply;
      reply = await send(request);
      if (reply.type === "answered" || isFenced(reply)) {
        current = index;
        return reply;
      }
      if (!isRead) {
        // The next call, whatever it is, goes elsewhere. This one is settled by looking.
        current = (index + 1) % endpoints.length;
        return reply;
      }
    }
    return reply;
  };
}

function isFenced(reply: PveReply): boolean {
  return reply.type === "notSent" && reply.why === "fenced";
}
