python3 job.py > job.log 2> job.log
