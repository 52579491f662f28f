/* How many hosts a target rate takes, what their adapters and drives must carry, and what a million
 * tokens cost. Prices are ranges, so costs are; what has no price is listed, not left out.
 */
#ifndef ENG_SIM_PLANNER_FLEET_H
#define ENG_SIM_PLANNER_FLEET_H

#include <stdbool.h>

#include "sim/planner/plan.h"

typedef struct EngFleetInput {
    double target;        /* tokens/s of all hosts */
    double step;          /* s, stalls included */
    double step_tokens;   /* that a step of a replica yields: accepted ones */
    int ranks;            /* devices of a replica */
    int devices_per_host; /* replicas do not share a device */
    int table_hosts;      /* at least so many, since the tables are shared by them */
} EngFleetInput;

typedef struct EngFleet {
    double replica_rate; /* tokens/s */
    int replicas, hosts;
    int devices, busy_devices; /* of these hosts, which are paid whole; that replicas run on */
    bool tables_bind;          /* more hosts than the rate takes, for the tables */
    double host_rate;          /* tokens/s of a host at the target */
} EngFleet;

/* ENG_USAGE: counts below 1, rates or times not above 0; ENG_UNSUPPORTED: more hosts than 2^31. */
EngStatus eng_fleet_plan(const EngFleetInput *input, EngFleet *fleet, EngErr *err);

/* What one host asks of a tier when its replicas run at the target. */
typedef struct EngLoad {
    double bytes_per_s, requests_per_s;
    double units; /* devices of the tier that carry it, fractional; NAN: no rate is known */
} EngLoad;
EngLoad eng_fleet_load(const EngFleet *fleet, double step_tokens, const EngStepPlan *plan,
                       int stage);

#define ENG_BILL_MAX_LINES 12
typedef struct EngBillLine {
    char name[48];
    double low, high; /* USD per million tokens */
} EngBillLine;

typedef struct EngBill {
    int n;
    EngBillLine lines[ENG_BILL_MAX_LINES];
    double low, high;
    char unpriced[160];  /* names, comma-separated; "" */
    char unpowered[160]; /* "power", or of what it is not counted: "power of dram"; "" */
} EngBill;

/* count of something that is rented. */
void eng_bill_rent(EngBill *cost, const char *name, const EngQuantity *per_hour, double count,
                   double tokens_per_s);
void eng_bill_power(EngBill *cost, double watts, double usd_per_kwh, double tokens_per_s);
void eng_bill_unpowered(EngBill *cost, const char *name); /* one of which the power is not known */
/* `amount` (pieces, or bytes with a price per byte) bought and used for `years`. */
void eng_bill_bought(EngBill *cost, const char *name, const EngQuantity *price, double amount,
                     double years, double tokens_per_s);

#endif
