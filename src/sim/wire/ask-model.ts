import { authHeaders, httpForm, wholeBody } from "../../drivers/proxmox/index.ts";
import type { PveReply, PveRequest, Send } from "../../drivers/proxmox/index.ts";
import type { ProxmoxModel } from "../proxmox/index.ts";

/** Who calls, where the request bears no ticket of its own. */
export interface ApiToken {
  readonly id: string;
  readonly secret: string;
}

/** The wire between the driver and a model, as HTTPS would have it. */
export function sendTo(model: ProxmoxModel, token: ApiToken): Send {
  return async (request) => {
    if (request.mayWrite !== undefined && !request.mayWrite()) {
      return { type: "notSent", why: "fenced", detail: "the fence is closed" };
    }
    return await askModel(model, request, token);
  };
}

/** What comes of a request that has left: its fence is asked no more. */
export async function askModel(
  model: ProxmoxModel,
  request: PveRequest,
  token: ApiToken,
): Promise<PveReply> {
  const { path, contentType, body } = httpForm(request);
  const type = contentType === undefined ? {} : { "content-type": contentType };
  const headers = { ...authHeaders(request, token), ...type };
  const http = { method: request.method, path: `/api2/json${path}`, headers };
  try {
    const reply = await model.send({ ...http, body: await wholeBody(body) });
    const { status, reason, headers: told } = reply;
    const date = told["date"] === undefined ? {} : { date: told["date"] };
    return { type: "answered", status, reason, body: reply.body, from: "pve1", ...date };
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error)) throw error;
    const detail = error.message;
    if (error.code === "ECONNREFUSED") return { type: "notSent", why: "unreachable", detail };
    return { type: "lost", detail };
  }
}
