const lines = [];
for (let i = 0; i < 150000; i++) {
    lines.push(`${i};${i % 13};${i % 101}`);
}
process.stdout.write(lines.join("\n") + "\n");
