import type { Clients } from '../clients.ts'
import type { World } from '../world.ts'
import { callsHaveOneResult } from './calls.ts'
import { childrenAreHeardOnce } from './children.ts'
import { busyLaws } from '../laws-busy.ts'
import { grantLaws } from '../laws-grants.ts'
import { limitLaws } from '../laws-limits.ts'
import { orderLaws } from '../laws-order.ts'
import { effectsKeepTheirWord } from '../laws-effects.ts'
import { worldLaws } from '../laws-world.ts'
import { finish } from './finished.ts'
import { foldsAreOfTheLog, snapshotsGiveTheFold, viewsGrowWithTheLog } from './folds.ts'
import { nothingIsLeft, numbersAreWhole, terminationIsFinal } from './logs.ts'
import { messagesAreTakenOnce } from './messages.ts'
import { auditsVerify, requestsAreStrict } from './models.ts'
import { secretsStaySecret } from './secrets.ts'

/** What must be true after every run, whatever happened in it. */
export async function checkInvariants(world: World, clients: Clients): Promise<void> {
  const finished = await finish(world, clients)
  numbersAreWhole(finished)
  foldsAreOfTheLog(finished)
  snapshotsGiveTheFold(finished)
  viewsGrowWithTheLog(finished)
  nothingIsLeft(finished)
  terminationIsFinal(finished)
  messagesAreTakenOnce(finished)
  callsHaveOneResult(finished)
  worldLaws(finished)
  effectsKeepTheirWord(finished)
  childrenAreHeardOnce(finished)
  orderLaws(finished)
  busyLaws(finished)
  grantLaws(finished)
  await limitLaws(finished)
  requestsAreStrict(finished)
  await auditsVerify(finished)
  await secretsStaySecret(finished)
}
