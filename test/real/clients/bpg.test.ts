import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import "../support/cleanup.ts";
import { type Ground, prepareGround, type Release } from "./support.ts";
import { serveImage, tasksEnded, vmids, volumesOf } from "./support.ts";
import { Workspace } from "./terraform.ts";

const node = "pve1";
const vmid = 140;

for (const release of ["8.4", "9.2"] as const) {
  test(`Terraform keeps a cloud-image VM on ${release}`, async (t) => {
    const ground = await prepareGround(t, release);
    const url = await serveImage(t, 2);
    const workspace = workspaceOf(ground, "cloud-image");

    await t.test("apply downloads the image and makes a VM of it that runs", async () => {
      await apply(workspace, cloudImage({ url, ...small }));
      await assertVm(ground, small);
      const image = await ground.simulator.get(
        `/nodes/${node}/storage/local/content?content=import`,
      );
      assert.ok(image.some((row: { volid: string }) => row.volid === "local:import/cloud.qcow2"));
    });
    await t.test("plan is empty afterwards", () => assertSettled(workspace));
    await t.test("a change is applied to the same VM, and plan is empty again", async () => {
      await apply(workspace, cloudImage({ url, ...large }));
      await assertVm(ground, large);
      await assertSettled(workspace);
    });
    await t.test("what somebody else changed is seen, and put right", () =>
      drift(ground, workspace),
    );
    await t.test("destroy leaves nothing", async () => {
      const { code, output } = await workspace.destroy();
      assert.equal(code, 0, output);
      await assertNothing(ground);
    });
    await t.test("a refusal is told in Proxmox' words, and leaves nothing", () => refuse(ground));
  });
}

interface Size {
  readonly cores: number;
  readonly memory: number;
  readonly gib: number;
  readonly tags: readonly string[];
}

const small: Size = { cores: 2, memory: 1024, gib: 10, tags: ["first", "web"] };
const large: Size = { cores: 4, memory: 2048, gib: 20, tags: ["second", "web"] };
const storage = "local-zfs";
const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBxMmzqc2ZBfF2p6a1kI5QkZy3nJ8sW0dLw1yVtX5rQk me";

function cloudImage({ url, cores, memory, gib, tags }: Size & { url: string }): string {
  return `
resource "proxmox_download_file" "image" {
  content_type = "import"
  datastore_id = "local"
  node_name    = "${node}"
  url          = "${url}"
}

resource "proxmox_virtual_environment_vm" "web" {
  name            = "web"
  node_name       = "${node}"
  vm_id           = ${vmid}
  description     = "Made with ${cores} cores."
  tags            = ${JSON.stringify(tags)}
  stop_on_destroy = true

  agent { enabled = true }
  cpu {
    cores = ${cores}
    type  = "x86-64-v2-AES"
  }
  memory { dedicated = ${memory} }
  disk {
    datastore_id = "${storage}"
    import_from  = proxmox_download_file.image.id
    interface    = "scsi0"
    discard      = "on"
    size         = ${gib}
  }
  network_device { bridge = "vmbr0" }
  initialization {
    datastore_id = "${storage}"
    ip_config {
      ipv4 {
        address = "192.0.2.140/24"
        gateway = "192.0.2.1"
      }
    }
    user_account {
      username = "admin"
      keys     = ["${key}"]
    }
  }
}
`;
}

async function assertVm({ simulator }: Ground, { cores, memory, gib, tags }: Size): Promise<void> {
  const config = await simulator.get(`/nodes/${node}/qemu/${vmid}/config`);
  assert.equal(config.name, "web");
  assert.equal(config.description, `Made with ${cores} cores.`);
  assert.deepEqual([config.cores, Number(config.memory)], [cores, memory]);
  assert.equal(config.tags, tags.join(";"));
  assert.match(config.scsi0, new RegExp(`^local-zfs:vm-${vmid}-disk-0,.*size=${gib}G`));
  assert.match(config.ide2, /^local-zfs:vm-140-cloudinit,media=cdrom/);
  assert.equal(config.ipconfig0, "gw=192.0.2.1,ip=192.0.2.140/24");
  assert.equal(decodeURIComponent(config.sshkeys).trim(), key);
  const { status } = await simulator.get(`/nodes/${node}/qemu/${vmid}/status/current`);
  assert.equal(status, "running");
}

async function drift(ground: Ground, workspace: Workspace): Promise<void> {
  const { simulator } = ground;
  const path = `/nodes/${node}/qemu/${vmid}/config`;
  await simulator.write("PUT", path, { tags: "intruder", description: "changed by hand" });
  const { settled, output } = await workspace.isSettled();
  assert.equal(settled, false);
  assert.match(output, /changed by hand/);
  const { code, output: applied } = await workspace.apply();
  assert.equal(code, 0, applied);
  await assertVm(ground, large);
}

async function refuse(ground: Ground): Promise<void> {
  const workspace = workspaceOf(ground, "refused");
  workspace.declare(`
resource "proxmox_virtual_environment_vm" "refused" {
  node_name = "${node}"
  vm_id     = ${vmid}
  started   = false
  disk {
    datastore_id = "nosuch"
    interface    = "scsi0"
    size         = 4
  }
}
`);
  const { code, output } = await workspace.apply();
  assert.equal(code, 1);
  assert.match(output.replaceAll(/\s+/g, " "), /storage 'nosuch' does not exist/);
  await assertNothing(ground);
}

for (const release of ["7.4", "9.2"] as const) {
  test(`Terraform clones a template on ${release}, linked, and full to another node`, async (t) => {
    const ground = await prepareGround(t, release);
    const workspace = workspaceOf(ground, "clones");
    await apply(workspace, clones(ground));
    await assertSettled(workspace);
    assert.deepEqual(new Set(await vmids(ground)), new Set([900, 901, 902]));
    const linked = await ground.simulator.get("/nodes/pve1/qemu/901/config");
    assert.match(linked.scsi0, /^local-zfs:base-900-disk-1\/vm-901-disk-1,/);
    const full = await ground.simulator.get("/nodes/pve2/qemu/902/config");
    assert.match(full.scsi0, /^shared:902\/vm-902-disk-\d\.raw,/);
    assert.ok(full.scsi0.includes(`size=${fullGib(release)}G`), full.scsi0);
    // What the guest's agent says arrives too; on 7.4 there is no image that would bring one.
    const seen = release === "7.4" ? [] : [["127.0.0.1"], ["192.0.2.77"]];
    assert.deepEqual(await workspace.output("addresses"), seen);
    const { code, output } = await workspace.destroy();
    assert.equal(code, 0, output);
    assert.deepEqual(await vmids(ground), []);
    for (const id of [900, 901, 902]) assert.deepEqual(await volumesOf(ground, id), []);
  });
}

/** 7.4 resizes at once, and the provider knows only the later releases, which give it a task. */
function fullGib(release: Release): number {
  return release === "7.4" ? 10 : 16;
}

function clones({ image, release }: Ground): string {
  const source = release === "7.4" ? "" : `import_from = "${image}"`;
  // 7.4 cannot be asked for one pool in the way in which the provider asks.
  const hasPool = release !== "7.4";
  const pool = `resource "proxmox_virtual_environment_pool" "team" { pool_id = "team" }`;
  return `
${hasPool ? pool : ""}
resource "proxmox_virtual_environment_vm" "template" {
  name      = "template"
  node_name = "pve1"
  vm_id     = 900
  template  = true
  started   = false
  bios      = "ovmf"
  machine   = "q35"
  efi_disk {
    datastore_id = "local-zfs"
    type         = "4m"
  }
  disk {
    datastore_id = "local-zfs"
    interface    = "scsi0"
    size         = 10
    ${source}
  }
  network_device { bridge = "vmbr0" }
}
resource "proxmox_virtual_environment_vm" "linked" {
  name            = "linked"
  node_name       = "pve1"
  vm_id           = 901
  stop_on_destroy = true
  clone {
    vm_id = proxmox_virtual_environment_vm.template.vm_id
    full  = false
  }
  memory { dedicated = 4096 }
}
resource "proxmox_virtual_environment_vm" "full" {
  name            = "full"
  node_name       = "pve2"
  vm_id           = 902
  ${hasPool ? "pool_id = proxmox_virtual_environment_pool.team.pool_id" : ""}
  stop_on_destroy = true
  agent { enabled = ${release !== "7.4"} }
  clone {
    vm_id        = proxmox_virtual_environment_vm.template.vm_id
    node_name    = "pve1"
    datastore_id = "shared"
  }
  disk {
    datastore_id = "shared"
    interface    = "scsi0"
    size         = ${fullGib(release)}
  }
  initialization {
    datastore_id = "shared"
    ip_config {
      ipv4 {
        address = "192.0.2.77/24"
        gateway = "192.0.2.1"
      }
    }
  }
}
output "addresses" {
  value = proxmox_virtual_environment_vm.full.ipv4_addresses
}
`;
}

for (const release of ["7.4", "8.4", "9.2"] as const) {
  test(`Terraform reads ${release} and keeps its users, after a login by password`, async (t) => {
    const ground = await prepareGround(t, release);
    const { user, password } = ground.simulator;
    const workspace = workspaceOf(ground, "access", { user, password });
    await apply(workspace, access("operators"));
    await assertSettled(workspace);
    assert.deepEqual(await workspace.output("nodes"), ["pve1", "pve2", "pve3"]);
    await apply(workspace, access("the operators"));
    await assertSettled(workspace);
    const group = await ground.simulator.get("/access/groups/ops");
    assert.deepEqual(group, { members: ["ops@pve"], comment: "the operators" });
    const { code, output } = await workspace.destroy();
    assert.equal(code, 0, output);
    assert.deepEqual(await ground.simulator.get("/access/groups"), []);
    const users = await ground.simulator.get("/access/users");
    assert.ok(!users.some(({ userid }: { userid: string }) => userid === "ops@pve"));
  });
}

function access(comment: string): string {
  return `
data "proxmox_version" "this" {}
data "proxmox_virtual_environment_nodes" "all" {}
data "proxmox_virtual_environment_node" "first" { node_name = "pve1" }
data "proxmox_datastores" "first" { node_name = "pve1" }
data "proxmox_virtual_environment_vms" "all" {}
data "proxmox_virtual_environment_containers" "all" {}
data "proxmox_virtual_environment_dns" "first" { node_name = "pve1" }
data "proxmox_virtual_environment_hosts" "first" { node_name = "pve1" }
data "proxmox_virtual_environment_time" "first" { node_name = "pve1" }
data "proxmox_virtual_environment_role" "admin" { role_id = "PVEVMAdmin" }

resource "proxmox_virtual_environment_role" "deployer" {
  role_id    = "deployer"
  privileges = ["VM.Audit", "VM.PowerMgmt"]
}
resource "proxmox_virtual_environment_group" "ops" {
  group_id = "ops"
  comment  = "${comment}"
}
resource "proxmox_virtual_environment_user" "ops" {
  user_id  = "ops@pve"
  password = "not-a-secret"
  comment  = "${comment}"
  groups   = [proxmox_virtual_environment_group.ops.group_id]
}
resource "proxmox_user_token" "ci" {
  user_id    = proxmox_virtual_environment_user.ops.user_id
  token_name = "ci"
  comment    = "${comment}"
}
resource "proxmox_acl" "ops" {
  group_id = proxmox_virtual_environment_group.ops.group_id
  role_id  = proxmox_virtual_environment_role.deployer.role_id
  path     = "/vms"
}
output "nodes" {
  value = data.proxmox_virtual_environment_nodes.all.names
}
`;
}

function workspaceOf(
  { simulator, caFile, folder }: Ground,
  name: string,
  credentials?: { user: string; password: string },
): Workspace {
  const { url, tokenId, tokenSecret } = simulator;
  return new Workspace(
    join(folder, name),
    { url, caFile },
    credentials ?? { tokenId, tokenSecret },
  );
}

async function apply(workspace: Workspace, configuration: string): Promise<void> {
  workspace.declare(configuration);
  const { code, output } = await workspace.apply();
  assert.equal(code, 0, output);
}

async function assertSettled(workspace: Workspace): Promise<void> {
  const { settled, output } = await workspace.isSettled();
  assert.ok(settled, output);
}

async function assertNothing(ground: Ground): Promise<void> {
  // The provider does not wait for the task that removes a file.
  await tasksEnded(ground, node);
  assert.deepEqual(await vmids(ground), []);
  assert.deepEqual(await volumesOf(ground, vmid), []);
  const path = `/nodes/${node}/storage/local/content?content=import`;
  const images = await ground.simulator.get(path);
  assert.deepEqual(
    images.map(({ volid }: { volid: string }) => volid),
    [ground.image],
  );
}
