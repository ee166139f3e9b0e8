import type { Clock } from "../../kernel/clock.ts";
import { failingOver } from "./wire/failover.ts";
import { httpsSend, type TlsTrust } from "./wire/https.ts";
import type { Send } from "./wire/wire.ts";

/** All that is needed to reach a cluster. */
export interface ProxmoxConnection {
  readonly endpoints: readonly string[];
  readonly token: { readonly id: string; readonly secret: string };
  readonly tls: TlsTrust;
  /** How long a call may take before its outcome is unknown. The server gives up at 30 s. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Told until when a certificate is valid, at each new connection. */
  readonly onCertificate?: (expiresMs: number, url: string) => void;
}

/** The real transport: HTTPS to the endpoints of one cluster. */
export function httpsTransport(connection: ProxmoxConnection): { send: Send; close: () => void } {
  const { endpoints, ...rest } = connection;
  const connections = endpoints.map((url) => httpsSend({ url, ...rest }));
  return {
    send: failingOver(connections.map(({ send }) => send)),
    close: () => {
      for (const { close } of connections) close();
    },
  };
}
