#!/bin/sh
# Slurm's TaskProlog: what it prints as "export NAME=VALUE" is in the job's environment.
# The QOS fikit-N is FIKIT's priority N; any other one is 0. The socket lies where the user's own daemon has it.
case "${SLURM_JOB_QOS:-}" in
    fikit-[0-9]) echo "export KESCO_PRIORITY=${SLURM_JOB_QOS#fikit-}" ;;
    *) echo "export KESCO_PRIORITY=0" ;;
esac
echo "export XDG_RUNTIME_DIR=/run/user/$(id -u)"
