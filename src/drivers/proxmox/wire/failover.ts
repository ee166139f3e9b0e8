import type { PveReply, PveRequest, Send } from "./wire.ts";

/**
 * Several endpoints of one cluster as one. Reads go on to the next endpoint when one cannot be
 * reached, does not answer, or could not pass the call on to the node that it is for; a write is
 * sent once and never again, whatever became of it. The endpoint that answered last is the first to
 * be asked next time.
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
      const next = await send(request);
      // What the API itself says of a node is worth more than that another endpoint is silent.
      reply = isAnswer(reply) && !isAnswer(next) ? reply : next;
      if (isSettled(next)) {
        current = index;
        return next;
      }
      if (!isRead) {
        // The next call, whatever it is, goes elsewhere. This one is settled by looking.
        if (!isAnswer(next)) current = (index + 1) % endpoints.length;
        return next;
      }
    }
    return reply;
  };
}

/** 595 to 599: the endpoint answers, and the node behind it did not answer the endpoint. */
function isSettled(reply: PveReply): boolean {
  if (reply.type === "answered") return reply.status < 595;
  return reply.type === "notSent" && reply.why === "fenced";
}

function isAnswer(reply: PveReply): boolean {
  return reply.type === "answered";
}
