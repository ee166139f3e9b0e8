import { eventResource } from "../../api/builtin/index.ts";
import type { Client } from "../../client/index.ts";

/** What people were told, by what about. */
export interface ToldEvent {
  readonly reason: string;
  readonly note: string;
  readonly about: string;
}

/** All Events that there are. */
export async function eventsOf(client: Client): Promise<ToldEvent[]> {
  const { items } = await client.of(eventResource).list();
  return items.map((event) => {
    const { reason, message, involvedObject } = event as Record<string, unknown>;
    const about = (involvedObject as { name?: string } | undefined)?.name ?? "";
    return { reason: String(reason), note: String(message), about };
  });
}
