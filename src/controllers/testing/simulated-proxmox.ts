import { proxmoxDriver } from "../../drivers/proxmox/index.ts";
import type { PveReply, PveRequest, Send } from "../../drivers/proxmox/index.ts";
import type { HypervisorDriver } from "../../hypervisor/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import {
  ProxmoxModel,
  smallCluster,
  tokenName,
  tokenUser,
  type ApiRequest,
  type Release,
} from "../../sim/index.ts";

const tokenSecret = "00000000-0000-4000-8000-0000000000aa";
const tokenId = `${tokenUser}!${tokenName}`;

/** A simulated Proxmox cluster on the world's clock, and drivers for it. */
export function simulateProxmox(
  release: Release,
  clock: Clock,
  random: Random,
): { readonly model: ProxmoxModel; readonly driver: () => HypervisorDriver } {
  const nodes = ["pve1", "pve2", "pve3"];
  const options = { release, nodes, clock, random, password: "secret", tokenSecret };
  const model = new ProxmoxModel({ state: smallCluster(options), clock, random });
  return { model, driver: () => proxmoxDriver({ send: sendTo(model), tokenId, random }) };
}

/** The wire between driver and model, as HTTPS would have it. */
function sendTo(model: ProxmoxModel): Send {
  return async (request) => {
    if (request.mayWrite !== undefined && !request.mayWrite()) {
      return { type: "notSent", why: "fenced", detail: "the fence is closed" };
    }
    try {
      const { status, reason, body } = await model.send(asHttp(request));
      if (status === 501 && request.path.endsWith("/certificates/info")) return authority;
      return { type: "answered", status, reason, body, from: "pve1" };
    } catch (error) {
      if (!(error instanceof Error) || !("code" in error)) throw error;
      const detail = error.message;
      if (error.code === "ECONNREFUSED") return { type: "notSent", why: "unreachable", detail };
      return { type: "lost", detail };
    }
  };
}

/** Certificates belong to the server around a model. Where it has none, this is its authority. */
const authority: PveReply = {
  type: "answered",
  status: 200,
  reason: "OK",
  body: JSON.stringify({ data: [{ filename: "pve-root-ca.pem", fingerprint: "AA:BB" }] }),
  from: "pve1",
};

function asHttp({ method, path, params }: PveRequest): ApiRequest {
  const encoded = encodeParams(params);
  const authorization = `PVEAPIToken=${tokenId}=${tokenSecret}`;
  if (method === "GET" || method === "DELETE") {
    const query = encoded === "" ? "" : `?${encoded}`;
    return { method, path: `/api2/json${path}${query}`, headers: { authorization } };
  }
  const headers = { authorization, "content-type": "application/x-www-form-urlencoded" };
  return { method, path: `/api2/json${path}`, headers, body: encoded };
}

function encodeParams(params: PveRequest["params"]): string {
  const said = Object.entries(params ?? {}).filter(([, value]) => value !== undefined);
  const parts = said.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return parts.join("&");
}
