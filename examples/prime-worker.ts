/** The module of a tool that runs in a worker: its default export is called with the arguments. */
export default function prime({ n }: { readonly n: number }): number {
  let found = 0
  for (let candidate = 2; ; candidate++) {
    let isPrime = true
    for (let divisor = 2; divisor * divisor <= candidate && isPrime; divisor++)
      isPrime = candidate % divisor !== 0
    if (isPrime && ++found === n) return candidate
  }
}
