import * as parlor from "parlor/slim";
import wasm from "parlor/parlor.wasm";
import { playHere } from "./page.js";

parlor.init(wasm);
playHere(parlor);
