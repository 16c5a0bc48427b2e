"""What an analyst gets back from a released column: frequencies with intervals, and an unbiased regression."""

from __future__ import annotations

import adult
import numpy as np

import mechdesign as md
from mechdesign.analysis import corrected_regression, identifiability, posterior_table

RELEASES = 200
LEVEL = 0.95

joint = adult.load()
channel = md.design(joint, md.LIP(0.5)).channel
names = joint.useful.names
occupation = np.repeat(np.arange(len(names)), joint.useful_counts)
truth = np.array(joint.useful_counts) / len(occupation)
column = [names[x] for x in occupation]

print(identifiability(channel).statement())
released = channel.apply(
    column, insecure_seed=5
)  # insecure: so that the figures below can be repeated
unbiased = md.estimate_frequencies(channel, released, target="records")
likely = md.estimate_frequencies(channel, released, method="ml")
print("\nsymbol              in the table   estimate   95 % interval")
for row, share in list(zip(unbiased.rows(), truth, strict=True))[:6]:
    print(
        f"{row['name']:20} {share:11.4f} {row['estimate']:10.4f}   {row['lower']:.4f} to {row['upper']:.4f}"
    )
print(f"largest error: unbiased {abs(unbiased.estimates - truth).max():.4f}, ", end="")
print(f"maximum likelihood {abs(likely.estimates - truth).max():.4f} ", end="")
print(f"(within {likely.likelihood.deficit:.0e} nats of the best fit)")

# Many releases of the same table: the intervals hold the truth as often as they say.
hits, errors = 0.0, np.zeros(len(names))
random = np.random.default_rng(1)
for _ in range(RELEASES):
    counts = sum(
        random.multinomial(n, row)
        for n, row in zip(joint.useful_counts, channel.matrix, strict=True)
    )
    result = md.estimate_frequencies(
        channel,
        dict(zip(channel.outputs, counts, strict=True)),
        target="records",
        level=LEVEL,
    )
    hits += ((result.lower <= truth) & (truth <= result.upper)).mean() / RELEASES
    errors += (result.unbiased - truth) / RELEASES
print(
    f"\n{RELEASES} releases: {100 * hits:.1f} % of the {100 * LEVEL:g} % intervals hold the true frequency,"
)
print(f"the mean error of an estimate is at most {abs(errors).max():.5f}")

# A regression on the occupation, of which only the released labels are known. The labels depend on the
# occupation alone, so unbiased weights of the records stand in for it.
office = np.isin(
    names,
    ("Adm-clerical", "Exec-managerial", "Prof-specialty", "Sales", "Tech-support"),
)
age = random.normal(40, 10, len(column))
wage = 10 + 4.0 * office[occupation] + 0.1 * age + random.normal(0, 3, len(column))
fit = corrected_regression(
    channel,
    released,
    wage,
    features={
        "office": [
            name for name, is_office in zip(names, office, strict=True) if is_office
        ]
    },
    covariates={"one": np.ones(len(age)), "age": age},
)
label = np.array([channel.outputs.index(text) for text in released])
guessed = office[posterior_table(channel).matrix.argmax(axis=1)][label]
naive, *_ = np.linalg.lstsq(
    np.column_stack([guessed, np.ones(len(age)), age]), wage, rcond=None
)
print("\neffect of office work on the wage (true: 4.00)")
print(f"  from the likeliest symbol of each label: {naive[0]:.2f}")
print(
    f"  corrected: {fit.coefficients[0]:.2f}, interval {fit.lower[0]:.2f} to {fit.upper[0]:.2f}"
)
