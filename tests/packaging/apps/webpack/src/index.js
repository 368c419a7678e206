import "../game.js";
