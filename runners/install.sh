#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Installs the dependencies of the project on Debian 12: missing packages, and
# the locked wheels into .venv. `./dev setup` and the image in docker/ both run
# it, so there is one description of the environment.
#
#     runners/install.sh [lab] [vm] [kernel] [linux-source] [test] [wheels]      default: lab wheels
#
# `vm` is for the lab of virtual machines: QEMU, and a kernel for the guests that
# is unpacked under var/vm/ and not installed, so this machine boots as before.
# `kernel` is what `./dev kernel` needs to build and emulate kernels. `test`
# includes both. `linux-source` makes var/linux/, a repository with Debian's sources of Linux.
#
# A second call changes nothing and takes a fraction of a second. Daemons of
# the installed packages are neither started nor enabled at boot, because the
# project runs its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly LAB_PACKAGES=(
	build-essential ninja-build pkg-config git
	python3 python3-venv
	postgresql-15 redis-server
	iproute2 iputils-ping ethtool procps bubblewrap libseccomp2
	openssh-server openssh-client
	netperf iperf3 tcpbench)
readonly VM_PACKAGES=(qemu-system-x86 kmod e2fsprogs)
# The guests' kernel: Debian's newest one for virtual machines.
readonly VM_KERNEL=linux-image-cloud-amd64
readonly KERNEL_PACKAGES=(build-essential git bc bison ccache flex libelf-dev python3 python3-venv qemu-system-x86)
readonly KERNEL_SOURCE=linux-source-6.1
readonly TEST_PACKAGES=(
	b4 ccache clang-14 libclang-rt-14-dev cppcheck mold shellcheck ministat chromium
	curl dovecot-imapd git-email libmailtools-perl ipmitool nginx-light openipmi postfix redis-tools traceroute
	default-jdk-headless golang-go gunicorn libpython3.11-testsuite memcached nodejs)
# The client is for back-ups: pg_dump must not be older than the database.
readonly WEB_PACKAGES=(python3 python3-venv openssh-client git postgresql-client-15)

readonly POLICY=/usr/sbin/policy-rc.d
readonly POLICY_KEPT=/usr/sbin/policy-rc.d.perfweb-kept
readonly POLICY_MARK='# made by perfweb while it installs packages'

die()
{
	printf 'install: %s\n' "$*" >&2
	exit 1
}

as_root()
{
	if [[ $(id -u) == 0 ]]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "packages are missing and you are not root: run this as root once, or install sudo"
	fi
}

# Prints the packages that are not installed.
missing_packages()
{
	# dpkg-query fails for an unknown package, which counts as not installed.
	{ dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "$@" 2>/dev/null || true; } |
	    sed -n 's/^ii //p' | sort >"$scratch/installed"
	printf '%s\n' "$@" | sort -u | comm -23 - "$scratch/installed"
}

has_candidate()
{
	apt-cache policy "$1" | grep -q '^  Candidate: [0-9]'
}

# apt can wait for the lock of dpkg, but not for that of its lists, which the
# machine's daily update holds for minutes after the first boot.
update_lists()
{
	local until=$((SECONDS + 300))
	until as_root env LC_ALL=C apt-get update -qq 2>"$scratch/apt.log"; do
		grep -q 'Unable to lock directory' "$scratch/apt.log" && ((SECONDS < until)) ||
		    { cat "$scratch/apt.log" >&2; die "apt-get update failed (its lines are above)"; }
		sleep 1
	done
}

# Debian ships netperf in its non-free component.  The mirror, the suites and
# the signing key are those of the machine's own entry for "main"; only the
# component differs.  Copying the entry keeps apt from seeing two entries for
# one suite that disagree about the key.
add_non_free()
{
	local release entry file number new
	release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	entry=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(SOURCESENTRY)' 'Created-By: Packages' |
	    awk -v r="$release" '$1 == r && $2 == "main" { print $3; exit }')
	[[ -n $entry ]] || die "apt has no entry for Debian $release main: add one to /etc/apt, then run this again"
	file=${entry%:*}
	number=${entry##*:}
	case $file in
	*.sources)
		new=/etc/apt/sources.list.d/perfweb-non-free.sources
		awk -v RS= -v n="$number" '/(^|\n)Types:/ && ++i == n' "$file" |
		    sed 's/^Components:.*/Components: non-free/' >"$scratch/source"
		;;
	*)
		new=/etc/apt/sources.list.d/perfweb-non-free.list
		sed -nE "${number}s/^(deb[[:space:]]+(\[[^]]*\][[:space:]]+)?[^[:space:]]+[[:space:]]+[^[:space:]]+)[[:space:]].*/\1 non-free/p" \
		    "$file" >"$scratch/source"
		;;
	esac
	[[ -s $scratch/source ]] || die "could not read the entry for Debian main in $file: add the component non-free there by hand"
	as_root install -m 644 "$scratch/source" "$new"
	echo "added Debian's non-free component (netperf) in $new"
	update_lists
}

# Debian calls policy-rc.d before it starts the daemons of new packages. This
# one forbids it. The machine's own, if any, is restored afterwards, also after
# an earlier run that was killed.
forbid_daemons()
{
	allow_daemons
	[[ ! -e $POLICY ]] || as_root mv "$POLICY" "$POLICY_KEPT"
	printf '#!/bin/sh\n%s\nexit 101\n' "$POLICY_MARK" >"$scratch/policy"
	as_root install -m 755 "$scratch/policy" "$POLICY"
}

allow_daemons()
{
	if grep -qsF "$POLICY_MARK" "$POLICY"; then
		as_root rm -f "$POLICY"
	fi
	if [[ -e $POLICY_KEPT ]]; then
		as_root mv "$POLICY_KEPT" "$POLICY"
	fi
}

# Newly installed daemons must not start at the next boot either.
disable_new_daemons()
{
	local package unit
	command -v systemctl >/dev/null || return 0
	for package in "$@"; do
		case $package in
		postgresql-15) unit=postgresql ;;
		redis-server) unit=redis-server ;;
		openssh-server) unit=ssh ;;
		netperf | iperf3) unit=$package ;;
		nginx-light) unit=nginx ;;
		dovecot-imapd) unit=dovecot ;;
		memcached) unit=memcached ;;
		postfix) unit=postfix ;;
		*) continue ;;
		esac
		as_root systemctl disable --quiet "$unit" 2>/dev/null || true
	done
}

install_packages()
{
	local missing
	mapfile -t missing < <(missing_packages "$@")
	[[ ${#missing[@]} -gt 0 ]] || return 0
	echo "installing: ${missing[*]}"
	has_candidate "${missing[0]}" || update_lists
	if [[ " ${missing[*]} " == *" netperf "* ]] && ! has_candidate netperf; then
		add_non_free
	fi
	forbid_daemons
	as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
	    apt-get -o DPkg::Lock::Timeout=300 install -q -y --no-install-recommends -o Dpkg::Use-Pty=0 \
	    "${missing[@]}" >"$scratch/apt.log" 2>&1 ||
	    { tail -20 "$scratch/apt.log" >&2; die "apt-get could not install: ${missing[*]} (its last lines are above)"; }
	allow_daemons
	disable_new_daemons "${missing[@]}"
}

# Unpacks a package of Debian into a directory without installing it.
unpack_package()
{
	local package=$1 directory=$2
	(cd "$scratch" && apt-get download -qq "$package" 2>apt.log) ||
	    { cat "$scratch/apt.log" >&2; die "apt-get could not download $package"; }
	rm -rf "$directory"
	mkdir -p "$directory"
	dpkg-deb -x "$scratch/${package}"_*.deb "$directory"
}

# The directory gets its name only when the kernel is complete.
unpack_kernel()
{
	local store=var/vm package
	[[ ! -d $store/kernel ]] || return 0
	has_candidate "$VM_KERNEL" || update_lists
	package=$(apt-cache depends "$VM_KERNEL" | sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p' | head -1)
	[[ -n $package ]] || die "apt knows no $VM_KERNEL, the kernel for virtual machines"
	echo "unpacking a kernel for virtual machines: $package"
	unpack_package "$package" "$store/kernel.new"
	mv "$store/kernel.new" "$store/kernel"
}

# Commits a directory without a repository to the branch main of one, as the service registers repositories only, and
# git diff shows a change. The threshold makes one pack of all files, which a fetch copies without comparing them.
# Debian's .gitignore ignores all sources.
commit_source()
{
	local fast=(-c core.bigFileThreshold=1 -c core.compression=1 -c gc.auto=0)
	rm -rf "$1/.git"
	git init --quiet --initial-branch main --template= "$1"
	git -C "$1" "${fast[@]}" add --all --force .
	git -C "$1" "${fast[@]}" -c user.name=perfweb -c user.email=perfweb@localhost commit --quiet --message "$2"
}

unpack_source()
{
	! git --git-dir var/linux/.git rev-parse --quiet --verify HEAD >"$scratch/head" 2>&1 || return 0
	[[ -d var/linux ]] || unpack_tree
	echo "committing the sources of Linux to a repository: var/linux"
	commit_source var/linux "Linux of Debian's package $KERNEL_SOURCE"
}

unpack_tree()
{
	has_candidate "$KERNEL_SOURCE" || update_lists
	echo "unpacking the sources of Linux: $KERNEL_SOURCE"
	unpack_package "$KERNEL_SOURCE" "$scratch/source"
	rm -rf var/linux.new
	mkdir -p var/linux.new
	tar --extract --strip-components 1 --directory var/linux.new --file "$scratch/source/usr/src/$KERNEL_SOURCE.tar.xz"
	mv var/linux.new var/linux
}

# The stamp's name is the set of wheels, and its content a hash of the lock files:
# an edit of any rebuilds. The wheels of the tests include those of the service.
install_wheels()
{
	local set=$1 locks=(requirements-uv.txt requirements.txt) stamp
	[[ $set == service ]] || locks+=(requirements-dev.txt)
	stamp=$(cat requirements*.txt | sha256sum | cut -d' ' -f1)
	if [[ -x .venv/bin/python ]] &&
	    { grep -qsx "$stamp" ".venv/stamp-$set" || grep -qsx "$stamp" .venv/stamp-test; }; then
		return 0
	fi
	echo "installing the locked wheels into .venv"
	rm -f .venv/stamp-*
	[[ -x .venv/bin/python ]] || /usr/bin/python3 -m venv .venv ||
	    die "could not make .venv: remove it and run this again"
	.venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes \
	    --only-binary :all: -r requirements-uv.txt || die "pip could not install uv: is the package index reachable?"
	# The locks are complete, except for what requirements-overrides.in leaves out.
	.venv/bin/uv pip install -q --python .venv/bin/python --no-deps --require-hashes --only-binary :all: \
	    "${locks[@]/#/-r}" || die "uv could not install the wheels: is the package index reachable?"
	echo "$stamp" >".venv/stamp-$set"
}

finish()
{
	allow_daemons
	rm -rf "$scratch"
}

main()
{
	local want packages=() wheels='' guests='' sources=''
	[[ $# -gt 0 ]] || set -- lab wheels
	for want in "$@"; do
		case $want in
		lab) packages+=("${LAB_PACKAGES[@]}") ;;
		vm) packages+=("${LAB_PACKAGES[@]}" "${VM_PACKAGES[@]}"); guests=yes ;;
		kernel) packages+=("${KERNEL_PACKAGES[@]}") ;;
		linux-source) packages+=(git); sources=yes ;;
		test)
			packages+=("${LAB_PACKAGES[@]}" "${VM_PACKAGES[@]}" "${KERNEL_PACKAGES[@]}" "${TEST_PACKAGES[@]}")
			wheels='test'
			guests=yes
			;;
		web) packages+=("${WEB_PACKAGES[@]}") ;;
		wheels) wheels=${wheels:-service} ;;
		*) die "unknown part '$want': use lab, vm, kernel, linux-source, test, web or wheels" ;;
		esac
	done
	. /etc/os-release
	[[ ${ID:-} == debian && ${VERSION_ID:-} == 12 ]] ||
	    die "this is ${PRETTY_NAME:-an unknown system}; the project is set up on Debian 12"
	[[ ${#packages[@]} == 0 ]] || install_packages "${packages[@]}"
	[[ -z $guests ]] || unpack_kernel
	[[ -z $sources ]] || unpack_source
	[[ -z $wheels ]] || install_wheels "$wheels"
}

scratch=$(mktemp -d)
trap finish EXIT
main "$@"
