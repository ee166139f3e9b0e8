"""What people do with proxmoxer, one story per run: python3 stories.py STORY, the rest on stdin."""

import io
import json
import sys
import time

from proxmoxer import ProxmoxAPI, ResourceException
from proxmoxer.backends.https import AuthenticationError

given = json.load(sys.stdin)
release = given["release"]
vmid = given["vmid"]


def connect(**credentials):
    # The library's five seconds are few where a refused login takes three and the machine is busy.
    where = {"port": given["port"], "verify_ssl": given["caFile"], "timeout": 30}
    return ProxmoxAPI(given["host"], **where, **credentials)


def by_token():
    user, name = given["tokenId"].split("!")
    return connect(user=user, token_name=name, token_value=given["tokenSecret"])


def by_password(password):
    return connect(user=given["user"], password=password)


def finish(api, upid):
    """Waits for a task, which must end well."""
    assert exit_of(api, upid) == "OK", exit_of(api, upid)


def exit_of(api, upid):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        status = api.nodes(upid.split(":")[1]).tasks(upid).status.get()
        if status["status"] == "stopped":
            return status["exitstatus"]
        time.sleep(0.05)
    raise AssertionError("the task did not end: " + upid)


def is_refused(work):
    try:
        work()
    except ResourceException as refusal:
        return refusal
    raise AssertionError("it was not refused")


def logs_in():
    api = by_password(given["password"])
    api.pools.post(poolid="by-ticket")
    assert [pool["poolid"] for pool in api.pools.get()] == ["by-ticket"]
    # A ticket is renewed by a login with the ticket as password.
    ticket, _ = api.get_tokens()
    renewed = by_password(ticket)
    assert renewed.get_tokens()[0] != ticket
    renewed.pools("by-ticket").delete()
    try:
        by_password("wrong")
    except AuthenticationError:
        return
    raise AssertionError("a wrong password was accepted")


def looks():
    api = by_token()
    assert api.version.get()["release"] == release
    assert sorted(node["node"] for node in api.nodes.get()) == ["pve1", "pve2", "pve3"]
    storages = {row["storage"]: row for row in api.nodes("pve1").storage.get()}
    assert storages["local-zfs"]["type"] == "zfspool", storages
    assert api.nodes("pve1").qemu.get() == []
    assert [row["type"] for row in api.cluster.resources.get(type="node")] == ["node"] * 3


def uploads():
    api = by_token()
    image = io.BytesIO(b"not really a disc")
    image.name = "tools.iso"
    finish(api, api.nodes("pve1").storage("local").upload.post(content="iso", filename=image))
    rows = api.nodes("pve1").storage("local").content.get(content="iso")
    assert [(row["volid"], row["size"]) for row in rows] == [("local:iso/tools.iso", 17)], rows


def creates():
    api = by_token()
    assert api.cluster.nextid.get(vmid=vmid) == str(vmid)
    disk = "local:4,format=qcow2" if release == "7.4" else "local:0,import-from=" + given["image"]
    upid = api.nodes("pve1").qemu.post(
        vmid=vmid,
        name="client",
        cores=2,
        memory=1024,
        net0="virtio,bridge=vmbr0",
        scsihw="virtio-scsi-pci",
        scsi0=disk,
        ide2="local:cloudinit",
        sata0="local:iso/tools.iso,media=cdrom",
        ciuser="admin",
        ipconfig0="ip=192.0.2.50/24,gw=192.0.2.1",
        boot="order=scsi0",
    )
    finish(api, upid)
    config = api.nodes("pve1").qemu(vmid).config.get()
    assert (config["name"], config["cores"], int(config["memory"])) == ("client", 2, 1024), config
    assert config["scsi0"].startswith("local:%d/vm-%d-disk-0.qcow2,size=" % (vmid, vmid)), config
    assert "cloudinit" in config["ide2"], config


def changes():
    api = by_token()
    vm = api.nodes("pve1").qemu(vmid)
    old = vm.config.get()["digest"]
    vm.config.put(cores=4, memory=2048, tags="client,changed", digest=old)
    refusal = is_refused(lambda: vm.config.put(cores=8, digest=old))
    assert "file change by other user" in refusal.content, refusal.content
    resized = vm.resize.put(disk="scsi0", size="12G")
    # 7.4 does it at once; since 8 it is a task.
    if resized is not None:
        finish(api, resized)
    config = vm.config.get()
    assert (config["cores"], int(config["memory"]), config["tags"]) == (4, 2048, "changed;client")
    assert config["scsi0"].endswith(",size=12G"), config
    finish(api, vm.config.post(sata1="local-zfs:1"))
    assert vm.config.get()["sata1"] == "local-zfs:vm-%d-disk-0,size=1G" % vmid
    vm.unlink.put(idlist="sata1", force=1)
    assert "sata1" not in vm.config.get()


def snapshots():
    api = by_token()
    vm = api.nodes("pve1").qemu(vmid)
    finish(api, vm.snapshot.post(snapname="before", description="a story"))
    vm.config.put(name="renamed")
    assert sorted(row["name"] for row in vm.snapshot.get()) == ["before", "current"]
    finish(api, vm.snapshot("before").rollback.post())
    assert vm.config.get()["name"] == "client"
    finish(api, vm.snapshot("before").delete())


def powers():
    api = by_token()
    vm = api.nodes("pve1").qemu(vmid)
    finish(api, vm.status.start.post())
    assert vm.status.current.get()["status"] == "running"
    finish(api, vm.status.stop.post())
    assert vm.status.current.get()["status"] == "stopped"
    kinds = {task["type"] for task in api.nodes("pve1").tasks.get(vmid=vmid)}
    assert {"qmcreate", "qmstart", "qmstop"} <= kinds, kinds


def clones():
    api = by_token()
    qemu = api.nodes("pve1").qemu
    finish(api, qemu(vmid).clone.post(newid=vmid + 1, name="copy", full=1))
    assert qemu(vmid + 1).config.get()["name"] == "copy"
    finish(api, qemu(vmid + 1).delete(purge=1))


def destroys():
    api = by_token()
    vms = api.nodes("pve1").qemu
    finish(api, vms(vmid).delete(purge=1, **{"destroy-unreferenced-disks": 1}))
    assert vms.get() == []
    finish(api, api.nodes("pve1").storage("local").content("local:iso/tools.iso").delete())
    assert api.nodes("pve1").storage("local").content.get(content="iso") == []


def fails():
    api = by_token()
    absent = is_refused(lambda: api.nodes("pve1").qemu(vmid).config.get())
    text = "Configuration file 'nodes/pve1/qemu-server/%d.conf' does not exist" % vmid
    assert (absent.status_code, absent.content) == (500, text), absent
    wrong = is_refused(lambda: api.nodes("pve1").qemu.post(vmid=vmid, cores="many"))
    assert (wrong.status_code, wrong.content) == (400, "Parameter verification failed."), wrong
    nothing = is_refused(lambda: api.nodes("pve1").qemu(vmid).importdisk.post())
    assert nothing.status_code == 501, nothing
    upid = api.nodes("pve1").qemu.post(vmid=vmid, ide2="nosuch:cloudinit")
    assert "storage 'nosuch' does not exist" in exit_of(api, upid)


globals()[sys.argv[1]]()
