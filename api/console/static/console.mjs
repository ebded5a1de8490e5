// What moves on a page. Without scripts each page is whole and stands still.
import { listen } from './answer.mjs';
import { ages } from './ages.mjs';
import { copying } from './copy.mjs';
import { shortcuts } from './keys.mjs';
import { keep } from './parts.mjs';

document.documentElement.classList.add('scripted');
const part = document.querySelector('[data-source]');
const kept = part && keep(part);
const answer = document.getElementById('answer');
if (answer) listen(answer, () => kept.now());
ages();
copying();
shortcuts(kept);
