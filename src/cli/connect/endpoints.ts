import { isIP } from "node:net";
import { defaultPort } from "../../drivers/proxmox/index.ts";
import { usageError } from "../command.ts";

/** The endpoint that a person means: "pve1", "pve1:8006" and "https://pve1:8006/" are the same. */
export function readEndpoint(text: string): string {
  const whole = text.includes("://") ? text : `https://${text}`;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (url === undefined || url.hostname === "") {
    throw usageError(`"${text}" is no address: write https://HOST:${defaultPort}`);
  }
  const fault = faultOf(url);
  if (fault !== undefined) throw usageError(fault);
  // The port of HTTPS itself vanishes from a URL; whoever writes it means it.
  const port = url.port || (/:443\/?$/.test(text) ? "443" : String(defaultPort));
  return `https://${url.hostname}:${port}`;
}

/** What the web interface, or somebody who copies from it, puts behind the host. */
const harmlessPaths = ["", "/", "/api2", "/api2/json", "/api2/json/"];

function faultOf(url: URL): string | undefined {
  if (url.protocol !== "https:") return `Proxmox VE speaks HTTPS only: write https://${url.host}`;
  if (url.username !== "" || url.password !== "") {
    return "an address cannot carry a user or password: Berth uses an API token";
  }
  const isBare = harmlessPaths.includes(url.pathname) && url.search + url.hash === "";
  return isBare ? undefined : `an address ends with the port: write https://${url.host}`;
}

/** A name for the Hypervisor where none was given: the host's, or just what it is. */
export function nameFor(endpoint: string, type: string): string {
  const host = new URL(endpoint).hostname;
  const [label = ""] = host.split(".");
  const isName = isIP(host.replaceAll(/^\[|\]$/g, "")) === 0 && host !== "localhost";
  return isName && nameForm.test(label) ? label : type;
}

/** As the API wants names: checked here, because it is asked only at the end. */
const nameForm = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export function readName(text: string): string {
  if (nameForm.test(text)) return text;
  throw usageError(`--name "${text}" cannot be one: small letters, digits and dashes, at most 63`);
}
