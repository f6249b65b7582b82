path = 'log'


with open(path, 'a') as f:
    for i in range(40000):
        f.write('line %d\n' % i)

