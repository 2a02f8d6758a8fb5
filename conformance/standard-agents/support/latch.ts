/** Something a test waits for, and something it lets happen. */
export interface Latch<T = void> {
  readonly reached: Promise<T>
  open(value: T): void
}

/** A latch that is opened once. */
export function latch<T = void>(): Latch<T> {
  let open!: (value: T) => void // set before the constructor of the promise returns
  const reached = new Promise<T>((resolve) => {
    open = resolve
  })
  return { reached, open }
}
