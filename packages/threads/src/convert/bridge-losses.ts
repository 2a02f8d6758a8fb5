import { joinPointer, type Loss } from '../issue.ts'

/** Collects what a conversion leaves behind. `null` counts as absent: no format here tells the two apart. */
export class Losses {
  readonly list: Loss[] = []

  add(pointer: string, reason: string): void {
    this.list.push({ pointer, reason })
  }

  /** Reports every field of `value` that is not among those carried over, so that no new field is lost in silence. */
  rest(value: object, pointer: string, carried: readonly string[], reason: string): void {
    for (const [key, field] of Object.entries(value)) {
      if (field === undefined || field === null || carried.includes(key)) continue
      this.list.push({ pointer: joinPointer(pointer, key), reason })
    }
  }
}
