/* Who may launch now: the policy by which processes share one GPU, as a library without clock, thread or allocation.
 *
 * The daemon feeds it with what clients report and with real times; `kesco fikit simulate` and the tests feed the very
 * same code with virtual ones. Same events, same answers.
 *
 * Words. A *task* is a process with a priority from 0 to 9; 9 comes first. The *holder* is the active task of highest
 * priority: it is never held, its launches are reported when they have happened (`passed`). Every other task stops at
 * its launch (`waits`) and goes on when its *ticket* is granted; then the launch counts as made, and no `passed`
 * follows. With a *credit* it need not stop: it launches for as long as what it has in flight is predicted to be done
 * in time, and says so afterwards (`credited`). A task is *idle* when all its launches are done and none waits. What it
 * leaves idle is its *gap*: predicted from the kernel that ended last. A task whose gap has outlasted every prediction
 * is *away*; the first task in order of priority that is not away is *acting*, and its gaps are those to fill.
 *
 * What a profile knows comes from `costs_file.h`, the form without JSON of `*.kfikit` (kesco/ir/kfikit.py).
 *
 * Use. One thread. Times are nanoseconds of one clock and must not go back (an earlier one counts as the latest one).
 * After one event or several comes `kesco_policy_decide`; call it again until it fills less than `room`, and again at
 * `*wake`. Only `new`, `task_arrives`, `cost` and `kernels` allocate, and an event of a kernel that was not seen
 * before. Functions that return int return 0, or -1 for what makes no sense (an unknown task, a ticket that is there
 * already): then nothing changed. Nothing here ends or blocks: who is not granted is let go by its deadline, which the
 * client keeps as well (`abandoned`), since a daemon can die.
 */
#ifndef KESCO_FIKIT_POLICY_H
#define KESCO_FIKIT_POLICY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KESCO_POLICY_VERSION 3
#define KESCO_POLICY_TASKS 256   /* tasks are numbered from 0 to this, less one; a number may be used again */
#define KESCO_POLICY_TICKETS 64  /* that may wait of one task: its threads that stand at a launch */
#define KESCO_POLICY_FLIGHT 1024 /* launches of one task whose prediction is remembered; the driver queues no more */
#define KESCO_NEVER UINT64_MAX

typedef enum {
    KESCO_EXCLUSIVE = 0,   /* whoever came first has the GPU until it leaves */
    KESCO_SHARING = 1,     /* everything is granted at once: the driver's time slices, or MPS */
    KESCO_STRICT = 2,      /* lower tasks run while higher ones have nothing on the GPU; no prediction */
    KESCO_REACTIVE = 3,    /* the same once they have had nothing for react_ns */
    KESCO_MEAN = 4,        /* BestPrioFit with mean times, as published */
    KESCO_QUANTILE = 5,    /* BestPrioFit with a high quantile of kernels, a low one of what is left of the gap */
    KESCO_CLAIRVOYANT = 6, /* BestPrioFit with the true times, which only a simulator can tell */
    KESCO_KINDS = 7
} KescoPolicyKind;

typedef struct {
    uint32_t version;           /* KESCO_POLICY_VERSION */
    uint32_t kind;              /* KescoPolicyKind */
    uint64_t threshold_ns;      /* a predicted gap below this is not worth beginning to fill */
    uint64_t guard_ns;          /* kept free at the end of a gap: the way of a grant to its launch, and of reports */
    uint64_t inflight_ns;       /* most predicted time of granted work that is not done; one kernel may be longer */
    uint64_t switch_ns;         /* until another task's kernel begins than the one before: of contexts; 0 under MPS */
    uint32_t inflight_launches; /* most granted launches that are not done; at least 1 */
    uint32_t time_percent;      /* which quantile of a kernel's time counts (KESCO_QUANTILE): high */
    uint32_t gap_percent;       /* which quantile of a gap counts (KESCO_QUANTILE): low */
    uint32_t drift_limit;       /* so many of 32 predictions were wrong: what was seen lately counts; 0: never */
    uint64_t unknown_ns;        /* what a kernel without a believable time is taken for; it is in flight alone */
    uint64_t away_ns;           /* idle for this long, and no prediction says that it comes back: away */
    uint64_t react_ns;          /* KESCO_REACTIVE: away after this; see react_permille as well */
    uint64_t quantum_ns;        /* tasks of one priority take turns as holder, this long each */
    uint64_t deadline_ns;       /* a ticket that waited this long is granted whatever else holds; 0: never */
    uint64_t age_ns;            /* the same as an option for fairness (ageing); 0: off */
    uint64_t harm_permille;   /* fill only while the time lost by higher tasks is at most this part of theirs; 0: off */
    uint64_t credit_ns;       /* a credit that is not used for so long lapses; 0: none, each launch has its grant */
    uint64_t react_permille;  /* KESCO_QUANTILE: where no gap is believed, fill once it has lasted for react_ns, while
                                 the time that this costs higher tasks is at most this part of theirs; 0: off */
    uint64_t beside_permille; /* KESCO_QUANTILE: under MPS, let others run beside the holder while its bursts take no
                                 more than this part longer; 0: never. See policy_beside.h */
} KescoPolicySettings;

/* Values of a distribution, between which it is taken to be even. A profile has those at fixed probabilities,
 * in percent: 0 1 2 5 10 20 30 40 50 60 70 80 90 95 99 100. Where it jumps, as from microseconds to milliseconds, it
 * has two of one probability: nothing is between them. What is left over repeats the last one. */
#define KESCO_KNOTS 32
#define KESCO_WHOLE 1000000
typedef struct {
    uint64_t count; /* measured values; 0: not known, and the rest means nothing */
    uint64_t mean;
    uint64_t parts[KESCO_KNOTS]; /* which part of the times is at most the knot: ascending, from 0 to KESCO_WHOLE */
    uint64_t knots[KESCO_KNOTS]; /* ascending, in nanoseconds; the first is the shortest one, the last is the longest */
} KescoTimes;

typedef struct {
    KescoTimes time; /* of the kernel on the device, alone */
    KescoTimes gap;  /* how long the device then stands idle until the task's next operation */
} KescoCost;

typedef struct {
    uint64_t identity;
    KescoCost cost;
} KescoKernel;

typedef enum {
    KESCO_GRANT_HOLDER = 0,   /* it became the holder while it waited */
    KESCO_GRANT_FREE = 1,     /* it is the acting task: every higher one is away */
    KESCO_GRANT_FILL = 2,     /* fits what is left of the acting task's gap */
    KESCO_GRANT_AGED = 3,     /* waited for age_ns */
    KESCO_GRANT_DEADLINE = 4, /* waited for deadline_ns */
    KESCO_GRANT_REACT = 5,    /* nothing is predicted, but the acting task has been idle for as long as it takes */
    KESCO_GRANT_REASONS = 6
} KescoGrantReason;

typedef struct {
    uint32_t task;
    uint32_t reason; /* KescoGrantReason */
    uint64_t ticket;
    uint64_t identity;
    uint64_t predicted_ns; /* how long it is taken for, a switch of contexts included */
    uint64_t gap_left_ns;  /* KESCO_GRANT_FILL: of the gap before it, the guard taken off; else 0 */
} KescoGrant;

/* A task may launch without asking while what it has in flight, this launch included, is predicted to be done by
 * `until`, and is nothing but this launch or takes no longer than `flight_ns` and is no more than `flight_launches`.
 * What each kernel is taken for says `kesco_policy_predicts`. */
typedef struct {
    uint64_t number; /* changes with each credit; never 0 */
    uint64_t until;  /* 0: no credit */
    uint64_t flight_ns;
    uint64_t flight_launches;
    uint64_t unknown_ns; /* what a kernel is taken for of which nothing is known; 0: it has to ask */
} KescoCredit;

/* Why the head of a task's order still waits, as of the last decision. */
typedef enum {
    KESCO_NOT_HELD = 0,
    KESCO_HELD_BUSY = 1,      /* a higher task has work on the GPU */
    KESCO_HELD_NO_GAP = 2,    /* it is idle, but no gap is predicted, or one too short to begin with */
    KESCO_HELD_NO_FIT = 3,    /* the kernel is longer than what is left of the gap */
    KESCO_HELD_IN_FLIGHT = 4, /* as much granted work as allowed is not done */
    KESCO_HELD_HARM = 5,      /* the harm budget is spent */
    KESCO_HELD_DRIFT = 6,     /* the gap's profile is no longer believed */
    KESCO_HELD_REASONS = 7
} KescoHeldReason;

/* Counters of one task since it arrived; for top, metrics and explain. */
typedef struct {
    uint32_t active; /* 1: arrived and not left */
    int32_t priority;
    uint32_t waiting;     /* tickets */
    uint32_t held_reason; /* KescoHeldReason of the first of them */
    uint64_t launched;    /* passed, granted, credited or abandoned */
    uint64_t done;
    uint64_t passed;
    uint64_t holds; /* tickets that ever waited */
    uint64_t grants[KESCO_GRANT_REASONS];
    uint64_t abandoned;
    uint64_t waited_ns;     /* of all tickets that no longer wait */
    uint64_t longest_ns;    /* of one of them */
    uint64_t filled_ns;     /* predicted time of its fills */
    uint64_t overruns;      /* of its fills, those that were not done when the higher task came back */
    uint64_t gaps;          /* it became idle and came back */
    uint64_t gap_ns;        /* all of them together */
    uint64_t wide_gaps;     /* of these, those of at least threshold_ns, */
    uint64_t wide_ns;       /* and all of them together: what could be filled */
    uint64_t promises;      /* predictions that it stays idle, worth filling */
    uint64_t broken;        /* of these, it came back before */
    uint64_t harms;         /* it came back and lower work was in its way */
    uint64_t harm_ns;       /* until that was done */
    uint64_t drifted;       /* predictions no longer believed: kernels' times and gaps */
    uint64_t unknown;       /* launches of which no time is known */
    uint64_t credited;      /* launched on a credit */
    uint64_t fillable_ns;   /* of its wide gaps, those in which a lower task's kernel had room, less the guard */
    uint64_t busy_ns;       /* while lower tasks had work on the GPU in its wide gaps */
    uint64_t beside;        /* 1: others run beside it now */
    uint64_t trials;        /* so often that was begun, */
    uint64_t beside_ns;     /* and so long it was, all together */
    uint64_t slow_permille; /* its last bursts beside others, over alone; 0: not known */
} KescoTaskState;

typedef struct KescoPolicy KescoPolicy;

/* What is taken where nobody measured better; `kind` as in KescoPolicyKind. */
void kesco_policy_defaults(KescoPolicySettings *settings, uint32_t kind);

/* Null without memory, or for settings of another version or that make no sense. */
KescoPolicy *kesco_policy_new(const KescoPolicySettings *settings);
void kesco_policy_free(KescoPolicy *policy);

/* What a profile knows of a kernel of an active task; forgotten when it leaves. Identity 0 stands for no kernel: its
 * `gap` is the one between the task's arrival and its first launch. */
int kesco_policy_cost(KescoPolicy *policy, uint32_t task, uint64_t identity, const KescoCost *cost);
/* The same of many kernels that were looked at before (`kesco_cost_sensible`): they are not copied, and stay as they
 * are until the task has left. A task of as many kernels as one likes arrives in no time. */
int kesco_policy_kernels(KescoPolicy *policy, uint32_t task, const KescoKernel *kernels, size_t count);
/* Whether a cost is one: knots and parts ascend, and are times. */
int kesco_cost_sensible(const KescoCost *cost);

/* Events, in order of time. */
int kesco_policy_task_arrives(KescoPolicy *policy, uint64_t now, uint32_t task, int priority);
int kesco_policy_task_leaves(KescoPolicy *policy, uint64_t now, uint32_t task); /* its tickets are forgotten */
/* Launched without being held: by the holder, or after failing open. */
int kesco_policy_passed(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t identity);
/* Stopped at its launch. Tickets of one task are granted in the order in which they came. They are never 0. */
int kesco_policy_waits(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t identity, uint64_t ticket);
/* What was granted under this ticket is launched only now: its client slept, and had to wake up. Until then it was not
 * on the GPU. Nobody need say so; where nobody does, the grant counts. */
int kesco_policy_begins(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t ticket);
/* Launched on the credit of this number. With another number than that of its latest credit: passed. */
int kesco_policy_credited(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t identity, uint64_t credit);
/* The client's own deadline let it go. Counts as passed, unless it has been granted: then it was counted already, and
 * this changes nothing. */
int kesco_policy_abandoned(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t ticket);
/* So many of this task's launches have ended, in all; `now` is when the last of them did, as well as that is known. Say
 * so too where a synchronize tells it. Without it a task is taken to be busy for good, and everyone else lives by
 * deadlines. */
int kesco_policy_done(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t launches);
/* The same, where the report may be late: the last of them was under way `late` nanoseconds before `now`, and nobody
 * looked since. */
int kesco_policy_done_late(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t launches, uint64_t late);
/* It has waited for all that it launched, `waited` nanoseconds since it said so the last time: the end of a request. */
int kesco_policy_waited(KescoPolicy *policy, uint64_t now, uint32_t task, uint64_t waited);

/* What only a simulator knows (KESCO_CLAIRVOYANT): when an idle task's next launch comes, and how long a waiting one
 * takes. */
int kesco_policy_tell_return(KescoPolicy *policy, uint32_t task, uint64_t at);
int kesco_policy_tell_time(KescoPolicy *policy, uint32_t task, uint64_t ticket, uint64_t time_ns);

/* Which waiting tickets are granted now: writes at most `room` of them and says how many. `*wake` (may be null) is when
 * to ask again if nothing happens before; KESCO_NEVER: only after an event. */
size_t kesco_policy_decide(KescoPolicy *policy, uint64_t now, KescoGrant *grants, size_t room, uint64_t *wake);

/* The task whose gate is open; -1: none. It changes with arrivals and departures, and in `decide` by turns. */
int kesco_policy_holder(const KescoPolicy *policy);
/* The task whose gaps are filled now, as of the last decision: the holder, or who acts while it is away; -1: none. */
int kesco_policy_acting(const KescoPolicy *policy);
/* A task's credit as of the last decision; returns whether it has one. */
int kesco_policy_credit(const KescoPolicy *policy, uint32_t task, KescoCredit *credit);
/* What a launch of this kernel is taken for on a credit, in nanoseconds; 0: unknown or not believed, it has to ask. */
uint64_t kesco_policy_predicts(const KescoPolicy *policy, uint32_t task, uint64_t identity);
/* Whether a credit is enough for one more launch; `outstanding` is what its launches in flight are taken for. */
int kesco_credit_allows(const KescoCredit *credit, uint64_t now, uint64_t outstanding, uint64_t launches,
                        uint64_t predicted);
/* Null for a task that never arrived. */
const KescoTaskState *kesco_policy_task(const KescoPolicy *policy, uint32_t task);

#ifdef __cplusplus
}
#endif

#endif
