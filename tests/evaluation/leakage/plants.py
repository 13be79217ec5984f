"""Leaks as people write them, each of another sort, and next to each the same code without the leak.

test_plants.py writes them to files. Nothing here is imported or run.
"""

from __future__ import annotations

from textwrap import dedent

# Name: the rule that catches it (or `not followed`), the code with the leak, the code without it.
PLANTS: dict[str, tuple[str, str, str]] = {}


def plant(name: str, rule: str, leaky: str, clean: str) -> None:
    """Add one."""
    PLANTS[name] = (rule, dedent(leaky).lstrip(), dedent(clean).lstrip())


plant(
    "a scaler fitted through a helper on all data", "fit-on-test",
    """
    import numpy as np
    from sklearn.preprocessing import StandardScaler

    def normalise(parts):
        scaler = StandardScaler()
        scaler.fit(np.vstack(parts))
        return [scaler.transform(part) for part in parts]

    def main(x_train, x_test):
        return normalise([x_train, x_test])
    """,
    """
    from sklearn.preprocessing import StandardScaler

    def normalise(fit_on, others):
        scaler = StandardScaler()
        scaler.fit(fit_on)
        return [scaler.transform(part) for part in (fit_on, *others)]

    def main(x_train, x_test):
        return normalise(x_train, [x_test])
    """,
)  # fmt: skip
plant(
    "a scaler fitted on validation data", "fit-on-validation",
    """
    scaler = RobustScaler()
    scaler.fit(x_val)
    x_train = scaler.transform(x_train)
    """,
    """
    scaler = RobustScaler()
    scaler.fit(x_train)
    x_val = scaler.transform(x_val)
    """,
)  # fmt: skip
plant(
    "partial_fit in a loop over all splits", "fit-on-test",
    """
    splits = {"train": load("train"), "val": load("val"), "test": load("test")}
    for name, frame in splits.items():
        scaler.partial_fit(frame)
    """,
    """
    splits = {"train": load("train"), "val": load("val"), "test": load("test")}
    for name, frame in splits.items():
        if name == "train":
            scaler.partial_fit(frame)
        frames[name] = scaler.transform(frame)
    """,
)  # fmt: skip
plant(
    "fit_transform before the split", "fit-transform",
    """
    features = pd.read_csv("features.csv")
    z = StandardScaler().fit_transform(features)
    train, test = z[features.flight.isin(train_ids)], z[features.flight.isin(test_ids)]
    """,
    """
    features = pd.read_csv("features.csv")
    x_train, x_test = features[features.flight.isin(train_ids)], features[~features.flight.isin(train_ids)]
    scaler = StandardScaler()
    z_train = scaler.fit_transform(x_train)
    z_test = scaler.transform(x_test)
    """,
)  # fmt: skip
plant(
    "a class that keeps everything and fits later", "fit-on-test",
    """
    class Pipeline:
        def __init__(self, flights):
            self.flights = flights
            self.scaler = MinMaxScaler()

        def prepare(self):
            self.scaler.fit(self.flights)

    pipeline = Pipeline(test_flights)
    pipeline.prepare()
    """,
    """
    class Pipeline:
        def __init__(self, flights):
            self.flights = flights
            self.scaler = MinMaxScaler()

        def prepare(self):
            self.scaler.fit(self.flights)

    pipeline = Pipeline(train_flights)
    pipeline.prepare()
    """,
)  # fmt: skip
plant(
    "early stopping on the test split", "fit-on-test",
    "model.fit(x_train, y_train, eval_set=[(x_test, y_test)])\n",
    "model.fit(x_train, y_train, eval_set=[(x_val, y_val)])\n",
)  # fmt: skip
plant(
    "a percentile of test scores in a helper", "fit-on-test",
    """
    def level(scores, rate):
        return np.percentile(scores, 100.0 - rate)

    def run(model, x_test):
        scores = model.score_samples(x_test)
        return scores > level(scores, 1.0)
    """,
    """
    def level(scores, rate):
        return np.percentile(scores, 100.0 - rate)

    def run(model, x_val, x_test):
        limit = level(model.score_samples(x_val), 1.0)
        return model.score_samples(x_test) > limit
    """,
)  # fmt: skip
plant(
    "test scores sorted, and one of them taken", "threshold-on-test",
    """
    ordered = np.sort(test_scores)
    threshold = ordered[int(0.99 * len(ordered))]
    """,
    """
    ordered = np.sort(val_scores)
    threshold = ordered[int(0.99 * len(ordered))]
    """,
)  # fmt: skip
plant(
    "the largest score of the test flights", "threshold-on-test",
    """
    scores = [model.score(flight) for flight in test_flights]
    cutoff = max(map(max, scores))
    """,
    """
    scores = [model.score(flight) for flight in val_flights]
    cutoff = max(map(max, scores))
    """,
)  # fmt: skip
plant(
    "mean and deviation of the test scores", "threshold-on-test",
    """
    alarms = test_scores > test_scores.mean() + 3.0 * test_scores.std()
    """,
    """
    alarms = test_scores > val_scores.mean() + 3.0 * val_scores.std()
    """,
)  # fmt: skip
plant(
    "the best point of the ROC curve of the test split", "threshold-on-test",
    """
    fpr, tpr, thresholds = roc_curve(y_test, test_scores)
    best = thresholds[np.argmax(tpr - fpr)]
    predicted = test_scores > best
    """,
    """
    fpr, tpr, _ = roc_curve(y_test, test_scores)
    area = auc(fpr, tpr)
    boot = [roc_auc_score(y_test[i], test_scores[i]) for i in resamples]
    low, high = np.percentile(boot, [2.5, 97.5])
    """,
)  # fmt: skip
plant(
    "a threshold chosen by how well it does on the test split", "threshold-on-test",
    """
    best_f1, best = 0.0, None
    for candidate in np.linspace(0.0, 1.0, 101):
        f1 = f1_score(y_test, test_scores > candidate)
        if f1 > best_f1:
            best_f1, best = f1, candidate
    threshold = best
    """,
    """
    best_f1, best = 0.0, None
    for candidate in np.linspace(0.0, 1.0, 101):
        f1 = f1_score(y_val, val_scores > candidate)
        if f1 > best_f1:
            best_f1, best = f1, candidate
    threshold = best
    print(f1_score(y_test, test_scores > threshold))
    """,
)  # fmt: skip
plant(
    "the best threshold by max with a key", "threshold-on-test",
    "limit = max(grid, key=lambda t: f1_score(y_test, scores_test > t))\n",
    "limit = max(grid, key=lambda t: f1_score(y_val, scores_val > t))\n",
)  # fmt: skip
plant(
    "an imported calibrate() on attacked scores", "fit-on-test",
    """
    from detector.tools import calibrate

    attacked = [inject(attack, flight) for flight in test_flights]
    rule = calibrate([score(flight) for flight in attacked], fpr=0.01)
    """,
    """
    from detector.tools import calibrate

    clean_val = [score(flight) for flight in val_flights]
    rule = calibrate(clean_val, fpr=0.01)
    """,
)  # fmt: skip
plant(
    "a threshold from validation flights that carry attacks", "attack-in-training",
    """
    spoofed = [inject(attack, flight) for flight in val_flights]
    threshold = np.quantile(np.concatenate([score(f) for f in spoofed]), 0.99)
    """,
    """
    spoofed = [inject(attack, flight) for flight in test_flights]
    threshold = np.quantile(np.concatenate([score(f) for f in val_flights]), 0.99)
    """,
)  # fmt: skip
plant(
    "a helper of another module that makes a threshold", "threshold-on-test",
    """
    from mylib import pick

    class Detector:
        def tune(self, scores):
            self.threshold_ = pick(scores)

    Detector().tune(scores_test)
    """,
    """
    from mylib import pick

    class Detector:
        def tune(self, scores):
            self.threshold_ = pick(scores)

    Detector().tune(scores_val)
    """,
)  # fmt: skip
plant(
    "rows sampled before the split", "sample-split",
    """
    df = pd.read_csv("features.csv").sample(frac=1.0, random_state=1)
    n = int(0.8 * len(df))
    train, test = df[:n], df[n:]
    """,
    """
    df = pd.read_csv("features.csv")
    flights = df.flight_id.unique()
    rng.shuffle(flights)
    train_ids, test_ids = flights[:8], flights[8:]
    train, test = df[df.flight_id.isin(train_ids)], df[df.flight_id.isin(test_ids)]
    """,
)  # fmt: skip
plant(
    "train_test_split of rows", "sample-split",
    "x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.2)\n",
    "train_ids, test_ids = train_test_split(flight_ids, test_size=0.2)\n",
)  # fmt: skip
plant(
    "a permutation of row numbers", "sample-split",
    """
    order = np.random.permutation(len(x))
    x_train, x_test = x[order[:800]], x[order[800:]]
    """,
    """
    order = np.random.permutation(len(flights))
    train_flights = [flights[i] for i in order[:8]]
    """,
)  # fmt: skip
plant(
    "a random mask", "sample-split",
    """
    mask = np.random.rand(len(df)) < 0.8
    train, test = df[mask], df[~mask]
    """,
    """
    mask = df.flight_id.isin(chosen)
    train, test = df[mask], df[~mask]
    """,
)  # fmt: skip
plant(
    "folds of rows", "sample-split",
    """
    for train_rows, test_rows in StratifiedKFold(5, shuffle=True).split(x, y):
        model.fit(x[train_rows], y[train_rows])
    """,
    """
    for train_rows, test_rows in GroupKFold(5).split(x, y, groups=flight_ids):
        model.fit(x[train_rows], y[train_rows])
    """,
)  # fmt: skip
plant(
    "a banned column in a list of features", "banned-feature",
    'FEATURES = ["gps_x", "gps_y", "imu_ax", "baro_alt"]\n',
    'FEATURES = ["gps_x", "gps_y", "imu_ax"]\nBANNED = ["baro_alt", "mag_heading"]\n',
)  # fmt: skip
plant(
    "a banned column in camel case", "banned-feature",
    'height = frame["BaroAlt"] - frame["gps_z"]\n',
    'height = frame["GpsZ"]\nframe = frame.drop(columns=["BaroAlt", "EkfVelN"])\n',
)  # fmt: skip
plant(
    "a banned column with its name put together", "banned-feature",
    """
    speeds = [df[f"ekf_vel_{axis}"] for axis in "ned"]
    """,
    """
    speeds = [df[f"gps_v{axis}"] for axis in "xyz"]
    """,
)  # fmt: skip
plant(
    "a banned column that is renamed, and an attribute", "banned-feature",
    """
    df = df.rename(columns={"magHeading": "north"})
    """,
    """
    df = df.rename(columns={"GPS_X": "gps_x"})
    y = df["label"]
    by_type = df.groupby("attack_type")
    """,
)  # fmt: skip
plant(
    "the label as a feature", "banned-feature",
    'x = df[["gps_x", "imu_ax", "label"]]\n',
    'x, y = df[["gps_x", "imu_ax"]], df["label"]\n',
)  # fmt: skip
plant(
    "a feature that is another one in other units", "copied-feature",
    """
    df["alt_ft"] = df["gps_z"] * 3.28084
    df["climb"] = df["gps_vz"].copy()
    """,
    """
    df["speed"] = np.hypot(df["gps_vx"], df["gps_vy"])
    df["gps_z"] = df["gps_z"] * 0.01
    df["alt_m"] = df["Alt"] * 0.01
    df = df.drop(columns=["Alt"])
    df["t"] = df["TimeUS"] * 1e-6
    """,
)  # fmt: skip
plant(
    "a fit on what comes from elsewhere", "not followed",
    """
    from data import everything

    model = IsolationForest()
    model.fit(everything())
    """,
    """
    from data import everything

    model = IsolationForest()
    x_train = everything().train
    model.fit(x_train)
    """,
)  # fmt: skip
plant(
    "code that is made at run time", "not followed",
    """
    exec(open("fit_scaler.py").read())
    """,
    """
    from fit_scaler import scaler
    """,
)  # fmt: skip
plant(
    "a threshold from scores of unknown flights", "not followed",
    """
    def choose(scores):
        threshold = np.quantile(scores, 0.99)
        return threshold
    """,
    """
    def choose(val_scores):
        threshold = np.quantile(val_scores, 0.99)
        return threshold
    """,
)  # fmt: skip
plant(
    "training data brought to scale by hand, with all data", "fit-on-test",
    """
    data = pd.concat([train, test])
    mean, deviation = data.mean(), data.std()
    train = (train - mean) / deviation
    """,
    """
    mean, deviation = train.mean(), train.std()
    train, test = (train - mean) / deviation, (test - mean) / deviation
    """,
)  # fmt: skip
plant(
    "columns by a banned prefix", "banned-feature",
    """
    columns = [c for c in df.columns if c.startswith("ekf_")]
    more = df.filter(regex="^fused_")
    """,
    """
    columns = [c for c in df.columns if not c.startswith("ekf_")]
    more = df.filter(regex="^gps_")
    """,
)  # fmt: skip
plant(
    "a loader that shuffles rows of unknown flights", "not followed",
    "loader = DataLoader(everything, batch_size=64, shuffle=True)\n",
    "loader = DataLoader(train_rows, batch_size=64, shuffle=True)\n",
)  # fmt: skip
plant(
    "a scaler over rows of which some come from elsewhere", "not followed",
    "scaler = StandardScaler().fit(np.vstack((x_train, x_more)))\n",
    "scaler = StandardScaler().fit(np.vstack((x_train, more_train)))\n",
)  # fmt: skip
