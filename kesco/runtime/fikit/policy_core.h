// The policy's state and its two halves: events (policy_events.cpp) and decisions (policy_decide.cpp, policy_gaps.cpp).
#pragma once

#include "policy_state.h"

#include <array>

struct KescoPolicy {
    using Task = kesco::fikit::Task;
    using Known = kesco::fikit::Known;

    explicit KescoPolicy(const KescoPolicySettings &chosen) : settings(chosen) {}

    // Events: policy_events.cpp
    int arrives(uint64_t at, uint32_t number, int priority);
    int leaves(uint64_t at, uint32_t number);
    int passed(uint64_t at, uint32_t number, uint64_t identity);
    int waits(uint64_t at, uint32_t number, uint64_t identity, uint64_t ticket);
    int begins(uint64_t at, uint32_t number, uint64_t ticket);
    int abandoned(uint64_t at, uint32_t number, uint64_t ticket);
    int done(uint64_t at, uint32_t number, uint64_t launches, uint64_t late);
    int waited(uint64_t at, uint32_t number, uint64_t time);
    int credited(uint64_t at, uint32_t number, uint64_t identity, uint64_t credit);
    Task *active(uint32_t number);
    const Task *active(uint32_t number) const;

    // Decisions: policy_decide.cpp
    size_t decide(uint64_t at, KescoGrant *grants, size_t room, uint64_t *wake);
    int holder() const;
    int acting_task = -1;
    uint64_t predicts(uint32_t number, uint64_t identity) const;
    uint64_t unknown_on_credit(const Task &task) const;

    const KescoPolicySettings settings;
    std::array<std::unique_ptr<Task>, KESCO_POLICY_TASKS> tasks;

  private:
    using Flight = kesco::fikit::Flight;
    using Ticket = kesco::fikit::Ticket;
    struct Grants;

    bool beside() const; // others run beside the holder
    // What they may have in flight: who goes on when they are to stop waits for that once, and not in each gap.
    uint64_t free_flight() const { return (beside() ? 4 : 1) * settings.inflight_ns; }
    uint64_t unknown_beside() const { return settings.inflight_ns / 8 + 1; }
    bool predicts() const { return settings.kind >= KESCO_MEAN; }
    Task &at_rank(size_t rank) { return *tasks[order_[rank]]; }
    size_t rank_of(uint32_t number) const;

    // policy_events.cpp
    void clock(uint64_t at);
    void sort_in(uint32_t number);
    void launch(Task &task, int32_t cost, uint64_t time, bool fill);
    void observe(Task &task, const Flight &ended, uint64_t late);
    void becomes_idle(Task &task);
    void came_back(uint32_t number);
    bool lower_in_flight(size_t rank);
    void end_gap(Task &task, uint64_t gap);
    void owes(Task &task, uint64_t harm);
    void settle_harms();
    void look_beside();

    // policy_gaps.cpp
    bool believed(const Task &task, int32_t cost) const;
    uint64_t predicted(const Task &task, const Ticket &ticket) const;
    uint64_t occupied(const Task &task, const Ticket &ticket) const;
    uint64_t outlasted(const Task &task) const;
    void promise(Task &task);
    void settle_promise(Task &task);
    bool away(Task &task);
    uint64_t next_change(size_t acting);

    // policy_decide.cpp
    size_t take_turns();
    void count_flights();
    void grant(Grants &out, uint32_t number, KescoGrantReason reason, uint64_t left = 0);
    void all_of(Grants &out, uint32_t number, KescoGrantReason reason);
    void overdue(Grants &out);
    void free_for(Grants &out, size_t acting);
    void fill_gap(Grants &out, size_t acting);
    int best_fit(size_t acting, uint64_t begin);
    bool room_in_flight(const Task &task, uint64_t most) const;
    // Something takes longer than predicted, beyond what reports may be late: nobody knows how much.
    bool overlong(uint64_t late) const { return flights_ && now_ > anchor_ + flight_ns_ + late; }

    // policy_credit.cpp
    struct Filling { // how the acting task's gap is filled, as of this decision
        KescoGrantReason reason = KESCO_GRANT_FILL;
        uint64_t until = 0; // 0: not at all
        uint64_t flight_ns = 0;
    };
    Filling filling(size_t acting);
    bool paid(size_t ranks) const;
    void want(size_t acting);
    void settle_credits(size_t acting);
    bool keeps_credit(size_t rank, size_t acting);
    uint64_t when_credits_change(size_t acting);
    Filling filling_;
    const Task *filler_ = nullptr; // who filled a gap last
    bool credits_ = false;         // some task has one
    bool harm_spent(size_t ranks, uint64_t *until = nullptr);
    void hold_below(size_t rank, KescoHeldReason reason);
    uint64_t when_to_ask(size_t acting);

    uint64_t now_ = 0;
    std::array<uint32_t, KESCO_POLICY_TASKS> order_ = {}; // the active tasks, the holder first
    size_t active_ = 0;
    uint64_t turn_began_ = 0;
    const Task *latest_ = nullptr; // whose launch was the last one
    uint64_t launches_ = 0;        // of all tasks
    uint64_t on_gpu_ = 0;          // launches of all tasks that are not done
    uint64_t harmed_ = 0;          // tasks that wait for lower work
    uint64_t anchor_ = 0;          // since when the granted work in flight runs, as far as is known
    uint64_t flights_ = 0;         // launches of others than the holder that are not done, their predicted time,
    uint64_t flight_ns_ = 0;       // and how many are unknown; as of this decision
    uint64_t flights_unknown_ = 0;
};
