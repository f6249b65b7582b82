//! A question, a host and prices for tests; the prices were rounded from one machine's.

use weir_model::advise::{
    AdviceHost, AdviceLanguage, AdvicePrices, AdviceQuestion, AllowedLoss, CallPrice, Medium, SharedPrice,
    SizedPrice,
};

pub fn question() -> AdviceQuestion {
    AdviceQuestion {
        record_bytes: 100,
        rate: 100.0,
        loss: AllowedLoss::Buffer,
        latency_s: 1.0,
        sharers: 1,
        medium: Medium::Hdd,
        lang: AdviceLanguage::C,
        dir: ".".into(),
    }
}

pub fn host() -> AdviceHost {
    AdviceHost {
        fs: "ext4".into(),
        kernel: "6.1".into(),
        cpus: 2,
        medium: Medium::Hdd,
        writeback_s: 35.0,
        dirty_limit_bytes: Some(1 << 30),
    }
}

fn table(prices: &[(u64, f64)]) -> Vec<SizedPrice> {
    let of =
        |&(bytes, ns): &(u64, f64)| SizedPrice { bytes, price: CallPrice { elapsed_ns: ns, cpu_ns: ns } };
    prices.iter().map(of).collect()
}

fn groups(prices: &[(u32, f64)]) -> Vec<SharedPrice> {
    let of = |&(writers, ns): &(u32, f64)| SharedPrice {
        writers,
        price: CallPrice { elapsed_ns: ns, cpu_ns: ns / 10.0 },
    };
    prices.iter().map(of).collect()
}

pub fn prices() -> AdvicePrices {
    AdvicePrices {
        write: table(&[
            (64, 1000.0),
            (512, 1300.0),
            (4096, 3500.0),
            (65_536, 25_000.0),
            (1 << 20, 400_000.0),
        ]),
        buffer_bytes: 65_536,
        stdio: table(&[(16, 18.0), (128, 66.0), (1024, 430.0)]),
        libweir: table(&[(16, 14.0), (128, 60.0), (1024, 420.0)]),
        mmap: table(&[(128, 60.0), (1024, 450.0)]),
        direct: table(&[(65_536, 100_000.0), (1 << 20, 900_000.0)]),
        io_uring: table(&[(65_536, 30_000.0)]),
        fdatasync: Some(CallPrice { elapsed_ns: 600_000.0, cpu_ns: 40_000.0 }),
        o_dsync: Some(CallPrice { elapsed_ns: 590_000.0, cpu_ns: 38_000.0 }),
        sync_record_bytes: 200,
        fdatasync_block: Some(CallPrice { elapsed_ns: 700_000.0, cpu_ns: 50_000.0 }),
        o_dsync_block: Some(CallPrice { elapsed_ns: 690_000.0, cpu_ns: 48_000.0 }),
        sync_block_bytes: 16_384,
        fdatasync_range_ns: Some([300_000.0, 3_000_000.0]),
        short_write_bytes: 4000,
        sync_after_short: table(&[(200, 600_000.0), (16_384, 690_000.0), (1 << 20, 2_700_000.0)]),
        long_write_bytes: 65_500,
        sync_after_long: table(&[(65_500, 700_000.0), (1 << 20, 1_700_000.0)]),
        sync_device_bytes: Some(16_384.0),
        device_bytes_per_s: Some(500e6),
        libweir_record_ns: 40.0,
        lock_ns: 12.0,
        shared_buffer: Some(CallPrice { elapsed_ns: 100.0, cpu_ns: 120.0 }),
        shared_write: Some(CallPrice { elapsed_ns: 2000.0, cpu_ns: 2500.0 }),
        shared_libweir: Some(CallPrice { elapsed_ns: 30.0, cpu_ns: 60.0 }),
        shared_libweir_write: Some(CallPrice { elapsed_ns: 3000.0, cpu_ns: 4000.0 }),
        group: groups(&[(2, 400_000.0), (4, 250_000.0), (8, 160_000.0)]),
        shared_sync: groups(&[(2, 500_000.0), (4, 300_000.0), (8, 200_000.0)]),
        libweir_group: groups(&[(2, 390_000.0), (4, 240_000.0), (8, 150_000.0)]),
        wake_ns: 20_000.0,
        cpu_wait_share: Some(0.0),
    }
}
