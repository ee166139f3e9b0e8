import assert from "node:assert/strict";
import { test } from "node:test";
import { endpointOf } from "./endpoint.ts";

const table: Record<string, string> = {
  "/version": "/version",
  "/cluster/resources": "/cluster/resources",
  "/cluster/nextid": "/cluster/nextid",
  "/cluster/ha/resources": "/cluster/ha/resources",
  "/cluster/ha/resources/vm%3A100": "/cluster/ha/resources/{sid}",
  "/nodes": "/nodes",
  "/nodes/pve1/status": "/nodes/{node}/status",
  "/nodes/pve1/qemu": "/nodes/{node}/qemu",
  "/nodes/pve1/qemu/100": "/nodes/{node}/qemu/{vmid}",
  "/nodes/pve1/qemu/100/config": "/nodes/{node}/qemu/{vmid}/config",
  "/nodes/pve1/qemu/100/status/current": "/nodes/{node}/qemu/{vmid}/status/current",
  "/nodes/pve1/qemu/100/agent/network-get-interfaces":
    "/nodes/{node}/qemu/{vmid}/agent/network-get-interfaces",
  "/nodes/pve1/qemu/100/snapshot/before/config":
    "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}/config",
  "/nodes/pve1/storage/local/content/local%3Aiso%2Fa.iso":
    "/nodes/{node}/storage/{storage}/content/{volume}",
  "/nodes/pve1/storage/local/download-url": "/nodes/{node}/storage/{storage}/download-url",
  "/nodes/pve1/tasks/UPID%3Apve1/status": "/nodes/{node}/tasks/{upid}/status",
  "/nodes/pve1/certificates/info": "/nodes/{node}/certificates/info",
  "/pools/web": "/pools/{pool}",
};

test("an endpoint is named without anything that it is about", () => {
  for (const [path, endpoint] of Object.entries(table)) assert.equal(endpointOf(path), endpoint);
});
