# The node image. Sourced by build.sh.
# shellcheck shell=bash

KIND_VERSION=v0.33.0
DEBIAN=bookworm
PACKAGES=systemd,systemd-sysv,dbus,iptables,nftables,iproute2,conntrack,ethtool,kmod,procps,mount,socat,jq,ca-certificates,e2fsprogs,runc

# build_node builds the image in the steps of kind's own images/base/Dockerfile.
build_node() {
  local root=$WORK/root
  stage "node: Debian" debian "$root"
  stage "node: Kubernetes" kubernetes "$root"
  stage "node: containerd and CNI plugins" runtime "$root"
  stage "node: files" node_files "$root"
  stage "node: images of components" component_images "$root"
  stage "node: Docker image" node_image "$root"
}

# debian installs a small Debian. It takes longest, so it is kept: delete the file for
# newer packages.
debian() {
  local kept
  kept=$CACHE/images/debian-$(echo "$DEBIAN $PACKAGES" | sha256sum | cut -c 1-16).tar
  if [ ! -e "$kept" ]; then
    nice -n 15 debootstrap --variant=minbase --include="$PACKAGES" "$DEBIAN" "$1" http://deb.debian.org/debian >"$WORK/debootstrap.log" ||
      fail "debootstrap: $(tail -n 3 "$WORK/debootstrap.log")"
    rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/* "$1"/var/log/* "$1"/usr/share/{doc,man,locale}/* "${1:?}"/dev/*
    tar -C "$1" --numeric-owner -cf "$kept.new" .
    mv "$kept.new" "$kept"
  else
    mkdir -p "$1"
    tar -C "$1" --numeric-owner -xpf "$kept"
  fi
}

# kubernetes installs one binary under the names of all programs.
kubernetes() {
  local binary=$1/usr/bin/kubernetes program version=k8s.io/component-base/version. minor=${NODE_VERSION#v1.}
  go_build nodeimage/kubernetes "$binary" \
    "-X ${version}gitVersion=$NODE_VERSION -X ${version}gitMajor=1 -X ${version}gitMinor=${minor%%.*}" .
  for program in kubeadm kubelet kubectl; do ln -s kubernetes "$1/usr/bin/$program"; done
}

runtime() {
  mkdir -p "$WORK/runtime" "$1/opt/cni/bin"
  go_build nodeimage/runtime "$WORK/runtime/" "" -tags "no_aufs no_zfs no_btrfs no_devmapper" tool
  mv "$WORK"/runtime/{containerd,containerd-shim-runc-v2,ctr} "$1/usr/local/bin/"
  mv "$WORK"/runtime/{host-local,loopback,portmap,ptp} "$1/opt/cni/bin/"
}

# node_files installs kind's own files and ours, and enables the services.
node_files() {
  local root=$1 kind
  kind=$(module_folder "sigs.k8s.io/kind@$KIND_VERSION")/images/base/files
  rm -rf "$root"/lib/systemd/system/multi-user.target.wants/* "$root"/etc/systemd/system/*.wants/* \
    "$root"/lib/systemd/system/local-fs.target.wants/* "$root"/lib/systemd/system/basic.target.wants/* \
    "$root"/lib/systemd/system/sockets.target.wants/*{udev,initctl}* \
    "$root/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service"
  cp -r --no-preserve=mode,ownership "$kind/." "$HERE/files/." "$root/"
  chmod 755 "$root"/usr/local/bin/* "$root"/kind/bin/*
  echo ReadKMsg=no >>"$root/etc/systemd/journald.conf"
  chroot "$root" systemctl enable kubelet.service containerd.service undo-mount-hacks.service 2>/dev/null
  chroot "$root" systemctl mask systemd-binfmt.service 2>/dev/null
  mkdir -p "$root/etc/kubernetes/manifests"
  printf %s "$NODE_VERSION" >"$root/kind/version"
  # Without CAP_SYS_RESOURCE nothing is protected more than containerd itself.
  sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' "$root/etc/containerd/config.toml"
  # This kubelet refuses cgroup v1 unless told otherwise.
  sed -i 's/^KUBELET_EXTRA_ARGS=.*/& --fail-cgroupv1=false/' "$root/etc/default/kubelet"
  "$root/usr/local/bin/ctr" oci spec |
    jq '.hooks.createContainer += [{"path": "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' >"$root/etc/containerd/cri-base.json"
}

# iptables_into FOLDER FROM copies iptables from a file system of Debian to an empty
# one, with its extensions and what these link: without libm kube-proxy's rules for
# services with two endpoints fail, silently.
iptables_into() {
  local to=$1 from=$2 library
  local programs=(/usr/sbin/xtables-nft-multi /usr/sbin/xtables-legacy-multi)
  mkdir -p "$to"/usr/{bin,sbin,lib,lib64,local/bin} "$to"/{run,etc,var} "$to"/usr/lib/x86_64-linux-gnu
  install -d -m 1777 "$to/tmp"
  for library in bin sbin lib lib64; do ln -s "usr/$library" "$to/$library"; done
  cp -a "$from/usr/lib/x86_64-linux-gnu/xtables" "$to/usr/lib/x86_64-linux-gnu/"
  cp -a "${programs[@]/#/$from}" "$to/usr/sbin/"
  (cd "$from" && printf '%s\n' usr/lib/x86_64-linux-gnu/xtables/*.so) >"$WORK/extensions"
  mapfile -t -O ${#programs[@]} programs <"$WORK/extensions"
  libraries_into "$to" "$from" "${programs[@]}"
  for library in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
    ln -s xtables-nft-multi "$to/usr/sbin/$library"
    ln -s xtables-nft-multi "$to/usr/sbin/${library/tables/tables-nft}"
    ln -s xtables-legacy-multi "$to/usr/sbin/${library/tables/tables-legacy}"
  done
}

# libraries_into FOLDER FROM FILE... copies what files in FROM link.
libraries_into() {
  local to=$1 from=$2 library
  shift 2
  for library in $(cd / && chroot "$from" ldd "$@" | sed -n 's/^\t[^/]*\(\/lib[^ ]*\) (.*/\1/p' | sort -u); do
    mkdir -p "$to${library%/*}"
    cp -L "${from%/}$library" "$to$library"
  done
}

# component_images makes the images that kubeadm asks for, as files in $WORK/images.
component_images() {
  local root=$1 components=$WORK/components image name all=()
  local path='ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
  mkdir -p "$WORK/coredns" "$WORK/pause"
  iptables_into "$components" "$root"
  cp "$root/usr/bin/kubernetes" "$components/usr/local/bin/"
  for name in etcd kube-apiserver kube-controller-manager kube-scheduler kube-proxy; do
    ln -s kubernetes "$components/usr/local/bin/$name"
  done
  go_build nodeimage/coredns "$WORK/coredns/coredns" "" .
  gcc -Os -Wall -static -DVERSION=meshctl -o "$WORK/pause/pause" \
    "$(cd "$HERE/kubernetes" && go list -m -f '{{.Dir}}' k8s.io/kubernetes)/build/pause/linux/pause.c"
  import "$components" meshctl.local/components "$path"
  for image in $(chroot "$root" kubeadm config images list --kubernetes-version "$NODE_VERSION"); do
    case $image in
    */coredns:*) import "$WORK/coredns" "$image" 'ENTRYPOINT ["/coredns"]' ;;
    */pause:*)
      import "$WORK/pause" "$image" 'ENTRYPOINT ["/pause"]' 'USER 65535:65535'
      # containerd's configuration names another version.
      name=$(sed -n 's/.*sandbox_image = "\(.*\)"/\1/p' "$root/etc/containerd/config.toml")
      docker tag "$image" "$name"
      all+=("$name")
      ;;
    *) docker tag meshctl.local/components "$image" ;;
    esac
    all+=("$image")
  done
  mkdir -p "$WORK/images"
  docker save --output "$WORK/images/components.tar" "${all[@]}"
  docker rmi "${all[@]}" meshctl.local/components >/dev/null
  rm -rf "$components" "$WORK/coredns" "$WORK/pause"
}

# node_image has containerd import the images inside a container, and commits that.
node_image() {
  local container
  import "$1" meshctl.local/node-base 'ENV container=docker'
  rm -rf --one-file-system "$1"
  # systemd ends on this signal, not on SIGTERM.
  container=$(docker run --detach --stop-signal=SIGRTMIN+3 --network=none --security-opt=seccomp=unconfined --volume "$WORK/images:/images:ro" \
    --entrypoint=sleep meshctl.local/node-base infinity)
  docker exec "$container" bash -euc '
    containerd >/tmp/containerd.log 2>&1 &
    for i in {1..60}; do ctr version >/dev/null 2>&1 && break; sleep 0.5; done
    ctr --namespace=k8s.io images import --label=io.cri-containerd.pinned=pinned --all-platforms --no-unpack --digests /images/components.tar
    kill $!
    wait $! || true
    rm -rf /tmp/containerd.log' >"$WORK/import.log" || {
    docker rm -f "$container" >/dev/null
    fail "node image: containerd could not import the images of components: $(tail -n 3 "$WORK/import.log")"
  }
  docker commit --change 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]' "$container" "$NODE_IMAGE" >/dev/null
  docker rm -f "$container" >/dev/null
  docker rmi meshctl.local/node-base >/dev/null # its layer stays, as that of the node image
  rm -rf "$WORK/images"
}
