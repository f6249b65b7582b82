for (let i = 0; i < 150000; i++) {
    console.log(`${i};${i % 13};${i % 101}`);
}
