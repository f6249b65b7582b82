path = 'log'


def append(line):
    with open(path, 'a') as f:
        f.write(line)


for i in range(40000):
    append('line %d\n' % i)
