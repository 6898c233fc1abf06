/* The k-merge pair kernel in C: the same algorithm as shoal.kernels.merge.pair_owner_costs, as a yardstick. */
#include <math.h>
#include <stdint.h>

typedef struct { int64_t t, x0, x1, y0, y1; } group;

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline double lower(double a, double b) { return b < a ? b : a; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static void pair_costs(const int32_t *t, const int32_t *x, const int32_t *y, int64_t a, int64_t a_end, int64_t b,
                       int64_t b_end, double bound_a, double bound_b, group *box, double (*count)[2],
                       int64_t *latest, double (*cost)[2], double *out_a, double *out_b) {
  const int64_t n_a = a_end - a, n_b = b_end - b;
  const double limit_a = bound_a * n_a, limit_b = bound_b * n_b;
  const int64_t far = (int64_t)1 << 62;
  int64_t last_a = 0, last_b = 0, g = 0;
  int64_t rx0 = far, rx1 = -far, ry0 = far, ry1 = -far;
  count[0][0] = count[0][1] = 0.0;
  latest[0] = 0;
  cost[0][0] = cost[0][1] = 0.0;
  while (a < a_end || b < b_end) {
    g++;
    const int64_t now = (a < a_end && (b >= b_end || t[a] <= t[b])) ? t[a] : t[b];
    int64_t gx0 = far, gx1 = -far, gy0 = far, gy1 = -far, in_a = 0, in_b = 0;
    while (a < a_end && t[a] == now) {
      gx0 = least(gx0, x[a]); gx1 = most(gx1, x[a]); gy0 = least(gy0, y[a]); gy1 = most(gy1, y[a]);
      in_a++; a++;
    }
    while (b < b_end && t[b] == now) {
      gx0 = least(gx0, x[b]); gx1 = most(gx1, x[b]); gy0 = least(gy0, y[b]); gy1 = most(gy1, y[b]);
      in_b++; b++;
    }
    box[g] = (group){now, gx0, gx1, gy0, gy1};
    const double upto_a = count[g - 1][0] + (double)in_a, upto_b = count[g - 1][1] + (double)in_b;
    count[g][0] = upto_a;
    count[g][1] = upto_b;
    const int64_t before = least(last_a, last_b);
    if (in_a) last_a = g;
    if (in_b) last_b = g;
    const int64_t m = least(last_a, last_b);
    latest[g] = m;
    if (m == 0) {
      cost[g][0] = cost[g][1] = INFINITY;
      continue;
    }
    if (m == before) {
      rx0 = least(rx0, gx0); rx1 = most(rx1, gx1); ry0 = least(ry0, gy0); ry1 = most(ry1, gy1);
    } else if (m < g) {
      rx0 = gx0; rx1 = gx1; ry0 = gy0; ry1 = gy1;
    } else {
      rx0 = ry0 = far; rx1 = ry1 = -far;
    }
    if ((a == a_end) != (b == b_end)) {
      cost[g][0] = cost[g][1] = INFINITY;
      continue;
    }
    int64_t x0 = rx0, x1 = rx1, y0 = ry0, y1 = ry1;
    double best_a = INFINITY, best_b = INFINITY;
    const int64_t low = latest[m - 1];
    for (int64_t s = m; s > low; s--) {
      x0 = least(x0, box[s].x0); x1 = most(x1, box[s].x1); y0 = least(y0, box[s].y0); y1 = most(y1, box[s].y1);
      const double c = (double)(now - box[s].t + 1) * (double)((x1 - x0) + (y1 - y0) + 2);
      const double c_a = c * (upto_a - count[s - 1][0]), c_b = c * (upto_b - count[s - 1][1]);
      if (c_a >= best_a && c_b >= best_b) break;
      best_a = lower(best_a, cost[s - 1][0] + c_a);
      best_b = lower(best_b, cost[s - 1][1] + c_b);
    }
    cost[g][0] = best_a;
    cost[g][1] = best_b;
    if (g % 16 == 0) {
      double least_a = best_a, least_b = best_b;
      for (int64_t p = low; p < g; p++) {
        least_a = lower(least_a, cost[p][0]);
        least_b = lower(least_b, cost[p][1]);
      }
      if (least_a > limit_a && least_b > limit_b) {
        *out_a = *out_b = INFINITY;
        return;
      }
    }
  }
  *out_a = cost[g][0] / n_a;
  *out_b = cost[g][1] / n_b;
}

void owner_cost_pairs(const int32_t *t, const int32_t *x, const int32_t *y, const int64_t *offsets,
                      const int64_t *first, const int64_t *second, int64_t n, void *box, void *count, void *latest,
                      void *cost, double *cost_first, double *cost_second) {
  for (int64_t p = 0; p < n; p++) {
    const int64_t i = first[p], j = second[p];
    pair_costs(t, x, y, offsets[i], offsets[i + 1], offsets[j], offsets[j + 1], INFINITY, INFINITY, box, count,
               latest, cost, cost_first + p, cost_second + p);
  }
}
