import { appendFileSync, unlinkSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Container } from './container.js';
import { follow, lines, range, type FollowedFolder } from './followed-folder.js';

async function linked(): Promise<Container> {
  // The records' times are not later than the clock, as those of a container that is followed.
  const followed = await follow({ startMs: Date.UTC(2026, 10, 20) });
  const container = new Container(followed);
  container.link();
  container.write(0, 40);
  await followed.collect();
  expect(await followed.numbers()).toEqual(range(0, 40));
  return container;
}

const warningsOf = ({ log }: FollowedFolder): string[] =>
  log.filter(({ level }) => level === 'warn').map(({ message }) => message);

async function restart({ followed }: Container, whileDown: () => void): Promise<void> {
  await followed.stop();
  whileDown();
  await followed.start();
  await followed.settle();
}

describe('the target of a link that is rotated beside itself while the server is down', () => {
  it.each([false, true])('is read to its end (compressed: %s)', async (isCompressed) => {
    const container = await linked();
    const { followed } = container;
    await restart(container, () => {
      container.write(40, 45);
      const path = container.rotate();
      if (isCompressed) container.compress(path);
      container.write(45, 50);
    });
    expect(await followed.numbers()).toEqual(range(0, 50));
    // Nothing is repeated later, and it may be compressed meanwhile.
    await restart(container, () => container.write(50, 52));
    expect(await followed.numbers()).toEqual(range(0, 52));
    expect(warningsOf(followed)).toEqual([]);
  });

  it('is read with the generations that nobody saw', async () => {
    const container = await linked();
    await restart(container, () => {
      container.write(40, 45);
      const first = container.rotate();
      container.write(45, 50);
      container.compress(first);
      container.compress(container.rotate());
      container.write(50, 55);
      container.rotate();
      container.write(55, 60);
    });
    expect(await container.followed.numbers()).toEqual(range(0, 60));
  });

  it('is read on after a crash in the middle of it', async () => {
    const container = await linked();
    const { followed } = container;
    await followed.stop();
    container.write(40, 45);
    const path = container.rotate();
    await followed.start();
    await followed.collect();
    await followed.stop();
    appendFileSync(path, lines(45, 50));
    container.compress(path);
    await followed.start();
    await followed.settle();
    expect(await followed.numbers()).toEqual(range(0, 50));
  });

  it('is read although the link leads to another folder by now', async () => {
    const container = await linked();
    const other = new Container(container.followed, 'two');
    await restart(container, () => {
      container.write(40, 45);
      other.link();
      other.write(45, 50);
    });
    expect(await container.followed.numbers()).toEqual(range(0, 50));
  });

  it('is read although the server stops again before it is read, and later lines are stored', async () => {
    const container = await linked();
    await container.followed.stop();
    container.compress(container.rotateWith(40, 45));
    container.write(45, 50);
    await container.followed.start();
    await container.followed.collect();
    container.followed.pass(1000);
    await restart(container, () => container.followed.pass(10_000));
    expect(await container.followed.numbers()).toEqual(range(0, 50));
  });

  it('is read although nothing of it was stored before', async () => {
    const followed = await follow({ startMs: Date.UTC(2026, 10, 20) });
    const container = new Container(followed);
    container.link();
    await followed.collect();
    await restart(container, () => {
      container.write(0, 5);
      container.rotate();
      container.write(5, 10);
    });
    expect(await followed.numbers()).toEqual(range(0, 10));
  });

  it('is reported with what is stored of it if it is gone', async () => {
    const container = await linked();
    const { followed } = container;
    const bytes = lines(0, 40).length;
    await restart(container, () => {
      unlinkSync(container.rotate());
      container.write(45, 50);
    });
    expect(await followed.numbers()).toEqual([...range(0, 40), ...range(45, 50)]);
    expect(warningsOf(followed)).toEqual([expect.stringContaining(`${bytes} bytes of it are stored`)]);
    // It is not reported again.
    await restart(container, () => container.write(50, 52));
    expect(warningsOf(followed)).toHaveLength(1);
  });

  it('does not bring back generations from before the agent was followed', async () => {
    const followed = await follow({ startMs: Date.UTC(2026, 10, 20, 1) });
    const container = new Container(followed);
    container.link();
    container.write(0, 40);
    const old = container.rotate();
    container.stamp(old, Date.UTC(2026, 10, 20));
    container.write(4000, 4040);
    await followed.settle();
    await restart(container, () => {
      container.compress(old);
      container.write(4040, 4045);
      container.rotate();
      container.write(4045, 4050);
    });
    expect(await followed.numbers()).toEqual(range(4000, 4050));
  });
});

it('the target of a link that is rotated while the server runs is read once', async () => {
  const container = await linked();
  container.write(40, 45);
  const path = container.rotate();
  container.write(45, 50);
  await container.followed.settle();
  await restart(container, () => container.compress(path));
  expect(await container.followed.numbers()).toEqual(range(0, 50));
  expect(warningsOf(container.followed)).toEqual([]);
});
