"""`watchkeeper evaluate lasting`: is a bias that lasts for minutes one alarm, there until the bias ends?"""
